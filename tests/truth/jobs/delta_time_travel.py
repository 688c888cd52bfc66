"""The first version of a Delta table becomes Parquet; then rows with one more column are appended to the table."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
first = spark.read.format("delta").option("versionAsOf", 0).load("history")
first.select("day", f.col("amount").alias("first_amount")).write.parquet("first")
new = spark.read.csv("new.csv", header=True, schema="day STRING, amount INT, source STRING")
new.write.format("delta").mode("append").option("mergeSchema", True).save(f"{sys.argv[1]}/history")
spark.read.format("delta").load("history").groupBy("source").count().write.parquet("sources")
spark.stop()
