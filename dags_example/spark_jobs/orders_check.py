"""Keeps orders as they were delivered, then fails if one of them lacks its quantity.

Usage: ``spark-submit orders_check.py ORDERS_CSV LAKE``. Below ``LAKE`` comes ``delivered/orders``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(orders_csv: str, lake: str) -> None:
    """Keep, then check."""
    spark = SparkSession.builder.appName("orders_check").getOrCreate()
    orders = spark.read.csv(orders_csv, header=True, inferSchema=True)
    orders.write.mode("overwrite").parquet(f"{lake}/delivered/orders")
    lacking = orders.where("quantity IS NULL").count()
    spark.stop()
    if lacking:
        raise ValueError(f"{lacking} orders without a quantity")


if __name__ == "__main__":
    main(*sys.argv[1:])
