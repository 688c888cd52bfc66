"""A stream of a topic meets a table of cities, and goes into another topic."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:29092"}
spark = SparkSession.builder.getOrCreate()
cities = spark.read.csv("cities.csv", header=True, schema="city STRING, country STRING")
orders = spark.readStream.format("kafka").options(**BROKER, subscribe="orders", startingOffsets="earliest").load()
parsed = orders.select("key", f.from_json(f.col("value").cast("string"), "amount INT, city STRING").alias("v"))
known = parsed.join(cities, parsed.v.city == cities.city)
messages = known.select("key", f.to_json(f.struct("v.amount", "country")).alias("value"))
query = messages.writeStream.format("kafka").options(**BROKER, topic="enriched", checkpointLocation="check")
query.trigger(availableNow=True).start().awaitTermination()
spark.stop()
