"""One output is written; a check of a second file fails in Python; a second output is never begun."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.where("status = 'paid'").select("id", "amount").write.parquet("paid")
limits = spark.read.csv("limits.csv", header=True, schema="id INT, cap INT")
if any(row.cap < 0 for row in limits.collect()):
    message = "a cap is negative"
    raise ValueError(message)
orders.write.parquet("never")
