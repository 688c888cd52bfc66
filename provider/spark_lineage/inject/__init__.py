"""The user's Spark properties, extended so that the driver writes lineage; what the user set wins."""
