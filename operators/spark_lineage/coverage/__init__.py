"""Coverage: each Spark task of an installation, with what is known of its lineage."""
