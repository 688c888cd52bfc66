"""Counts what was sold of each product on each day, in a stream that has state; it ends when all files are read.

Usage: ``spark-submit orders_windows.py SOURCE_DIRECTORY TARGET CHECKPOINT``. A day is written when the watermark has
passed it: later runs with the same checkpoint go on with the days that are still open.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

SCHEMA = """order_id int, customer_id int, product string, quantity int, unit_price double, status string,
            ordered_at timestamp"""


def main(source: str, target: str, checkpoint: str) -> None:
    """Count each order once, in the window of its day."""
    spark = SparkSession.builder.appName("orders_windows").getOrCreate()
    orders = spark.readStream.schema(SCHEMA).option("pathGlobFilter", "orders*.csv").csv(source, header=True)
    once = orders.withWatermark("ordered_at", "1 day").dropDuplicatesWithinWatermark(["order_id"])
    daily = once.groupBy(f.window("ordered_at", "1 day").alias("day"), "product").agg(f.sum("quantity").alias("sold"))
    query = (
        daily.select(f.col("day.start").cast("date").alias("day"), "product", "sold")
        .writeStream.queryName("orders_windows")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(target, format="parquet")
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
