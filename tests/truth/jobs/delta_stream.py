"""A Delta table is streamed into a new one, filtered, and merged into another, batch by batch."""

import sys

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.format("delta").load("events")
sink = events.where("kind = 'x'").selectExpr("id", "value * 2 AS twice").writeStream.format("delta")
sink = sink.option("checkpointLocation", "checkpoint/sink").trigger(availableNow=True)
sink.start(f"{sys.argv[1]}/sink").awaitTermination()


def merge(batch: DataFrame, _: int) -> None:
    """Raise the caps of limits to what the batch has."""
    batch.createOrReplaceTempView("batch")
    batch.sparkSession.sql(f"""
        MERGE INTO delta.`{sys.argv[1]}/limits` t USING batch s ON t.id = s.id
        WHEN MATCHED AND s.value > t.cap THEN UPDATE SET cap = s.value
        WHEN NOT MATCHED THEN INSERT (id, cap) VALUES (s.id, s.value)
    """)


caps = spark.readStream.format("delta").load("events").writeStream.foreachBatch(merge)
caps.option("checkpointLocation", "checkpoint/caps").trigger(availableNow=True).start().awaitTermination()
spark.stop()
