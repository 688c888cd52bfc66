"""Makes five Delta tables with odd headers, which only column mapping allows."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("stock", "prices", "old", "renamed", "grown"):
    table = f"delta.`{sys.argv[1]}/{name}`"
    spark.sql(f"""
        CREATE TABLE {table} (id BIGINT, `Amount, EUR` BIGINT, `cost AS planned` STRING, `THEN (` INT) USING delta
        TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
    """)
    spark.sql(f"INSERT INTO {table} VALUES (1, 10, 'a', 1), (2, -5, 'b', 0)")
spark.stop()
