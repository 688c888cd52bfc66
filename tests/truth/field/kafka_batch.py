"""Topics are read as batches into files and summed up into another topic; one read takes two topics."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:29092"}
spark = SparkSession.builder.getOrCreate()
orders = spark.read.format("kafka").options(**BROKER, subscribe="orders").load()
parsed = orders.select(
    f.col("key").cast("string").alias("id"),
    f.from_json(f.col("value").cast("string"), "amount INT, city STRING").alias("v"),
).select("id", "v.amount", "v.city")
parsed.where("amount > 1").write.parquet("large")
orders.select("topic", "partition", "offset", "timestamp", "value").write.parquet("raw")
both = spark.read.format("kafka").options(**BROKER, subscribe="orders,returns").load()
both.select(f.upper(f.col("key").cast("string"))).write.parquet("keys")
totals = parsed.groupBy("city").agg(f.sum("amount").alias("total"))
totals.select(f.col("city").alias("key"), f.to_json(f.struct("city", "total")).alias("value")).write.format(
    "kafka"
).options(**BROKER, topic="totals").save()
spark.stop()
