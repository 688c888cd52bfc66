"""A first Spark context writes orders and is stopped; a second one of the same program counts what the first wrote."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.select("id", "amount").write.parquet("first")
spark.stop()

spark = SparkSession.builder.appName("again").getOrCreate()
spark.read.parquet("first").groupBy("amount").count().write.orc("second")
spark.stop()
