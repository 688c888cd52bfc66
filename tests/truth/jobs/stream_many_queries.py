"""Five queries at once: two file sinks of one source, a memory and a noop sink of another, one of generated rows."""

import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.csv("orders", header=True, schema="id INT, amount INT")
clicks = spark.readStream.csv("clicks", header=True, schema="user STRING, page STRING")
ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()


def start(frame, name, sink, path=None, mode="append", *, is_endless=False):
    """Start a query, which ends once it has read what is there unless it is endless."""
    query = frame.writeStream.queryName(name).format(sink).outputMode(mode)
    query = query if is_endless else query.trigger(availableNow=True)
    return query.option("checkpointLocation", f"checkpoint/{name}").start(path)


generated = start(ticks.select((f.col("value") + 1).alias("next")), "ticks", "parquet", "ticks", is_endless=True)
queries = [
    start(orders.where("amount >= 20"), "big", "parquet", "big"),
    start(orders.select(f.col("id").alias("key")), "keys", "csv", "keys"),
    start(clicks.groupBy("page").count(), "pages", "memory", mode="complete"),
    start(clicks, "nowhere", "noop"),
]
for query in queries:
    query.awaitTermination()
while not any(progress["numInputRows"] for progress in generated.recentProgress):
    time.sleep(0.2)
generated.stop()
spark.stop()
