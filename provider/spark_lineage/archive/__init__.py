"""The same merge over any number of lineage files, as a PySpark job."""
