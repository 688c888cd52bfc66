"""Writes the orders of one day into its partition, in place of what was there.

Usage: ``spark-submit orders_by_day.py ORDERS_CSV TARGET DAY``. Below ``TARGET`` comes ``day=DAY``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(orders_csv: str, target: str, day: str) -> None:
    """Write one partition."""
    spark = SparkSession.builder.appName("orders_by_day").getOrCreate()
    orders = spark.read.csv(orders_csv, header=True, inferSchema=True)
    of_day = orders.where(f.to_date("ordered_at") == f.lit(day)).select("order_id", "customer_id", "quantity")
    of_day.write.mode("overwrite").parquet(f"{target}/day={day}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
