"""Orders from CSV files as they come, appended to a path; it never ends by itself.

Usage: ``spark-submit orders_stream.py SOURCE_DIRECTORY LAKE``. Below ``LAKE`` comes ``stream/orders``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

SCHEMA = """order_id int, customer_id int, product string, quantity int, unit_price double, status string,
            ordered_at timestamp"""


def main(source: str, lake: str) -> None:
    """Follow a directory."""
    spark = SparkSession.builder.appName("orders_stream").getOrCreate()
    orders = spark.readStream.schema(SCHEMA).option("pathGlobFilter", "orders*.csv").csv(source, header=True)
    shipped = orders.where("status = 'shipped'").select("order_id", "customer_id", "ordered_at")
    query = (
        shipped.writeStream.queryName("orders")
        .option("checkpointLocation", f"{lake}/stream/_checkpoint")
        .trigger(processingTime="1 second")
        .start(f"{lake}/stream/orders", format="parquet")
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
