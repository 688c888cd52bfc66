"""DISTINCT, dropDuplicates, INTERSECT, EXCEPT, UNION and a pivot."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
returns = spark.read.csv("returns.csv", header=True, inferSchema=True)
orders.select("country").distinct().write.parquet("countries")
orders.dropDuplicates(["country"]).select("country", "amount").write.parquet("one_each")
orders.select("country").intersect(returns.select("land")).write.parquet("in_both")
orders.select("country").exceptAll(returns.select("land")).write.parquet("never_returned")
orders.select("country").union(returns.select("land")).distinct().write.parquet("in_any")
orders.groupBy("country").pivot("status", ["paid", "open"]).sum("amount").write.parquet("by_status")
spark.stop()
