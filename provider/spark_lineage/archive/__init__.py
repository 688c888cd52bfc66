"""Merge any number of lineage files, as a PySpark job, with the code of every merge."""
