"""A checkpoint and a local checkpoint cut the plan in two."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setCheckpointDir("checkpoints")
orders = spark.read.csv("orders.csv", header=True, inferSchema=True).where("amount > 15").checkpoint()
orders.select("order_id").write.parquet("big")
customers = spark.read.csv("customers.csv", header=True, inferSchema=True).localCheckpoint()
customers.select("name").write.parquet("names")
spark.stop()
