"""Fills the topics orders and returns of the broker at 127.0.0.1:29092."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for topic, messages in {
    "orders": [("a", '{"amount": 10, "city": "Oslo"}'), ("b", '{"amount": 1, "city": "Moss"}'), ("c", '{"amount": 5}')],
    "returns": [("a", '{"amount": 10}')],
}.items():
    frame = spark.createDataFrame(messages, "key STRING, value STRING").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:29092").option("topic", topic).save()
spark.stop()
