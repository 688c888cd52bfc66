"""Asks what has become of a Spark application, and tells when that changes."""
