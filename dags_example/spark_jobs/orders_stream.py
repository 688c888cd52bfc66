"""Orders from CSV files as they come, appended to a path; it never ends by itself.

Usage: ``spark-submit orders_stream.py SOURCE_DIRECTORY TARGET CHECKPOINT``. Started anew with the same checkpoint, it
goes on where it was.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

SCHEMA = """order_id int, customer_id int, product string, quantity int, unit_price double, status string,
            ordered_at timestamp"""


def main(source: str, target: str, checkpoint: str) -> None:
    """Follow a directory."""
    spark = SparkSession.builder.appName("orders_stream").getOrCreate()
    orders = spark.readStream.schema(SCHEMA).option("pathGlobFilter", "orders*.csv").csv(source, header=True)
    shipped = orders.where("status = 'shipped'").select("order_id", "customer_id", "ordered_at")
    query = (
        shipped.writeStream.queryName("orders")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="1 second")
        .start(target, format="parquet")
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
