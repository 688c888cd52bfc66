"""Asks how a Spark application is doing, and reports when that changes."""
