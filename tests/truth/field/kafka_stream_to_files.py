"""A stream of a topic is parsed into files, and summed up batch by batch."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:29092", "startingOffsets": "earliest"}
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.format("kafka").options(**BROKER, subscribe="orders").load()
parsed = orders.select(
    f.col("key").cast("string").alias("id"),
    "timestamp",
    f.get_json_object(f.col("value").cast("string"), "$.city").alias("city"),
)
query = parsed.where("city IS NOT NULL").writeStream.format("parquet").option("checkpointLocation", "check/one")
query.trigger(availableNow=True).start("parsed").awaitTermination()


def count(batch: DataFrame, number: int) -> None:
    """Count the messages of a batch by city."""
    batch.groupBy("city").agg(f.count("*").alias("n"), f.max("id").alias("last")).write.mode("append").parquet("counts")


query = parsed.writeStream.foreachBatch(count).option("checkpointLocation", "check/two")
query.trigger(availableNow=True).start().awaitTermination()
spark.stop()
