"""A table is laid over files that are there, and read; another is given a place of its own, and filled."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.sql(f"CREATE TABLE history USING parquet LOCATION '{home}/archive/2025'")
spark.sql(f"CREATE TABLE summary (region STRING, total BIGINT) USING parquet LOCATION '{home}/lake/summary'")
spark.sql("INSERT INTO summary SELECT region, SUM(amount) FROM history GROUP BY region")
spark.stop()
