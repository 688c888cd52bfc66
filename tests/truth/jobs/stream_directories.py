"""Two streams, a file a batch: one of a partitioned directory, joined with a file, one of a glob, in a function."""

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
names = spark.read.csv("names.csv", header=True, schema="id INT, name STRING")
orders = spark.readStream.option("maxFilesPerTrigger", 1).csv("orders", header=True, schema="id INT, amount INT")
named = orders.join(names, "id").selectExpr("name", "amount * 2 AS twice", "'new' AS kind")
sink = named.writeStream.format("json").option("checkpointLocation", "checkpoint/orders").trigger(availableNow=True)
sink.start("out").awaitTermination()


def keep(batch: DataFrame, _: int) -> None:
    """Write one batch."""
    batch.write.mode("append").parquet("kept")


clicks = spark.readStream.option("maxFilesPerTrigger", 1).csv("clicks/*", header=True, schema="page STRING")
query = clicks.writeStream.foreachBatch(keep).option("checkpointLocation", "checkpoint/clicks")
query.trigger(availableNow=True).start().awaitTermination()
spark.stop()
