"""Totals are collected, and written as rows of the program."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
rows = orders.groupBy("cust").agg(f.sum("amount").alias("total")).collect()
totals = spark.createDataFrame([(row.cust, row.total) for row in rows], "cust INT, total BIGINT")
totals.write.parquet("top")
spark.stop()
