"""Iceberg tables whose changes are merged on read (``updated``, ``deleted``, ``merged``), or copy rows (``copied``)."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
modes = ", ".join(f"'write.{command}.mode' = 'merge-on-read'" for command in ("update", "delete", "merge"))
for name, properties in (
    ("updated", modes),
    ("deleted", modes),
    ("merged", modes),
    ("copied", "'write.update.mode' = 'copy-on-write'"),
):
    spark.sql(f"""
        CREATE TABLE ice.db.{name} (id INT, name STRING, status STRING) USING iceberg
        TBLPROPERTIES ('format-version' = '2', {properties})
    """)
    spark.sql(f"INSERT INTO ice.db.{name} VALUES (1, 'Ann', 'new'), (2, 'Bob', 'old'), (3, 'Cid', 'old')")
spark.sql("CREATE TABLE ice.db.flags (id INT, bad BOOLEAN) USING iceberg")
spark.sql("INSERT INTO ice.db.flags VALUES (1, true), (2, false)")
spark.stop()
