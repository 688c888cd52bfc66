"""Polls the status of a Spark application, and reports changes."""
