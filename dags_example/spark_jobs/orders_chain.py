"""One step of four, each of which reads what the one before has written.

Usage: ``spark-submit orders_chain.py land|clean|enrich|report DATA LAKE``. Below ``LAKE`` come ``landed``, ``cleaned``,
``enriched`` and ``revenue``.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def land(spark: SparkSession, data: str, _: str) -> DataFrame:
    """Keep the orders as they came."""
    return spark.read.csv(f"{data}/orders.csv", header=True, inferSchema=True)


def clean(spark: SparkSession, _: str, lake: str) -> DataFrame:
    """Keep what was shipped."""
    orders = spark.read.parquet(f"{lake}/landed")
    amount = (f.col("quantity") * f.col("unit_price")).alias("amount")
    return orders.where("status = 'shipped'").select("order_id", "customer_id", amount)


def enrich(spark: SparkSession, data: str, lake: str) -> DataFrame:
    """Say where each order went."""
    customers = spark.read.csv(f"{data}/customers.csv", header=True, inferSchema=True)
    return spark.read.parquet(f"{lake}/cleaned").join(customers.select("customer_id", "country"), "customer_id")


def report(spark: SparkSession, _: str, lake: str) -> DataFrame:
    """Add up the countries."""
    return spark.read.parquet(f"{lake}/enriched").groupBy("country").agg(f.sum("amount").alias("revenue"))


STEPS = {
    "land": (land, "landed"),
    "clean": (clean, "cleaned"),
    "enrich": (enrich, "enriched"),
    "report": (report, "revenue"),
}


def main(step: str, data: str, lake: str) -> None:
    """Run one step."""
    spark = SparkSession.builder.appName(f"orders_chain.{step}").getOrCreate()
    make, name = STEPS[step]
    make(spark, data, lake).coalesce(1).write.mode("overwrite").parquet(f"{lake}/{name}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
