"""Two tables, of which one lies outside of the warehouse."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
for statement in (
    "CREATE DATABASE old",
    f"CREATE TABLE old.apart USING parquet LOCATION '{sys.argv[1]}/before' AS SELECT 1 AS id",
    "CREATE TABLE old.plain USING parquet AS SELECT 1 AS id",
):
    spark.sql(statement)
spark.stop()
