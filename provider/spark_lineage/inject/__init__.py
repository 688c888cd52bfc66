"""Extends the user's Spark properties so that the driver writes lineage; what the user set wins."""
