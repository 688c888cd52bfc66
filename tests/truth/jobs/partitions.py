"""Writes partitions, reads one of them back, and reads one partition of what was there before."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sales = spark.read.csv("sales.csv", header=True, schema="id INT, amount INT, region STRING, day STRING")
sales.write.partitionBy("day", "region").parquet("by_day")
spark.read.parquet("by_day/day=2026-01-01").groupBy("region").sum("amount").write.csv("first_day")
spark.read.parquet("history/day=2025-12-31").select("id").write.parquet("last_year")
spark.stop()
