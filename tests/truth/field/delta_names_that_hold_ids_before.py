"""Makes the tables whose rows are changed."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
for name, columns in (
    ("old", "`No #12, old` BIGINT"),
    ("gone", "`No #12, old` BIGINT"),
    ("lots", "`qty (x#3, y)` BIGINT, z BIGINT"),
):
    spark.sql(f"CREATE TABLE delta.`{home}/{name}` (id BIGINT, {columns}) USING delta {mapping}")
    values = "(1, 1, 1), (2, 2, 2)" if name == "lots" else "(1, 1), (2, 2)"
    spark.sql(f"INSERT INTO delta.`{home}/{name}` VALUES {values}")
spark.stop()
