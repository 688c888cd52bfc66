"""Rows of the program name kinds of orders; the orders are counted, and then joined with the kinds."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
kinds = spark.createDataFrame([("a", 1), ("b", 2)], "note STRING, kind INT")
print(orders.count())
orders.join(kinds, "note").select("id", "kind").write.parquet("joined")
spark.stop()
