"""The program says by its exit code that it is not content, and never stops Spark."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.where("amount > 1000").select("id").write.mode("overwrite").parquet("large")
if spark.read.parquet("large").isEmpty():
    sys.exit(3)
