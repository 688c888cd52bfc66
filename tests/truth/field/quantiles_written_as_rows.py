"""Two quantiles of the amounts are written as a row."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
low, high = orders.approxQuantile("amount", [0.1, 0.9], 0.0)
spark.createDataFrame([(low, high)], "low DOUBLE, high DOUBLE").write.parquet("bounds")
spark.stop()
