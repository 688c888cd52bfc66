"""Adds to a dataset what is new in it, and then reads all of it for a summary."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
fresh = spark.read.csv("fresh.csv", header=True, inferSchema=True)
known = spark.read.parquet("ledger")
fresh.join(known, "id", "left_anti").write.mode("append").parquet("ledger")
spark.read.parquet("ledger").agg(f.sum("amount").alias("total")).write.parquet("summary")
spark.stop()
