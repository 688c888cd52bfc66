"""Reads Spark's event logs and its physical plans: evidence beyond the listener."""
