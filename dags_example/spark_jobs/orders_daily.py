"""Counts the orders of each day.

Usage: ``spark-submit orders_daily.py ORDERS_CSV LAKE``. Below ``LAKE`` comes ``daily/orders``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(orders_csv: str, lake: str) -> None:
    """Count."""
    spark = SparkSession.builder.appName("orders_daily").getOrCreate()
    orders = spark.read.csv(orders_csv, header=True, inferSchema=True)
    daily = orders.groupBy(f.to_date("ordered_at").alias("day")).agg(f.count("*").alias("orders"))
    daily.write.mode("overwrite").parquet(f"{lake}/daily/orders")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
