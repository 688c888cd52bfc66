"""Orders and customers from CSV files, in three steps: bronze as delivered, silver cleaned, gold for the report.

Usage: ``spark-submit orders_medallion.py ORDERS_CSV CUSTOMERS_CSV LAKE``. Below ``LAKE`` come the paths
``bronze/orders``, ``bronze/customers``, ``silver/customers`` and ``gold/top_customers``; the tables ``silver.orders``
and ``gold.revenue_by_country`` come where ``spark.sql.warehouse.dir`` says, which is a local directory here.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

CANCELLED = ("cancelled", "refunded")
TOP = 10


def to_bronze(spark: SparkSession, source: str, path: str) -> None:
    """Keep a CSV file as it was delivered."""
    spark.read.csv(source, header=True, inferSchema=True).write.mode("overwrite").parquet(path)


def to_silver(spark: SparkSession, lake: str) -> None:
    """Take out what was delivered twice or in parts, and give the columns their types."""
    orders = (
        spark.read.parquet(f"{lake}/bronze/orders")
        .dropDuplicates(["order_id"])
        .where(f.col("quantity").isNotNull())
        .select(
            "order_id",
            "customer_id",
            "status",
            (f.col("quantity") * f.col("unit_price")).cast("decimal(12, 2)").alias("amount"),
            f.to_date("ordered_at").alias("ordered_on"),
        )
    )
    overwrite_table(orders, "silver", "orders")
    print("orders kept:", spark.table("silver.orders").count())

    customers = spark.read.parquet(f"{lake}/bronze/customers").select(
        "customer_id", "name", f.upper("country").alias("country")
    )
    customers.write.mode("overwrite").parquet(f"{lake}/silver/customers")


def to_gold(spark: SparkSession, lake: str) -> None:
    """Join orders with customers: revenue by country as a table, the best customers as a path."""
    orders = spark.table("silver.orders").where(~f.col("status").isin(*CANCELLED))
    sales = orders.join(spark.read.parquet(f"{lake}/silver/customers"), "customer_id")

    by_country = sales.groupBy("country").agg(f.sum("amount").alias("revenue"), f.count("order_id").alias("orders"))
    overwrite_table(by_country, "gold", "revenue_by_country")

    top_customers = (
        sales.groupBy("customer_id", "name").agg(f.sum("amount").alias("revenue")).orderBy(f.desc("revenue"))
    )
    top_customers.limit(TOP).write.mode("overwrite").parquet(f"{lake}/gold/top_customers")


def overwrite_table(rows: DataFrame, database: str, table: str) -> None:
    """Write a managed table. The catalog in memory forgot that of an earlier run, whose files are in the way."""
    spark = rows.sparkSession
    if not spark.catalog.tableExists(f"{database}.{table}"):
        warehouse = urlsplit(str(spark.conf.get("spark.sql.warehouse.dir"))).path
        shutil.rmtree(Path(warehouse, f"{database}.db", table), ignore_errors=True)
    rows.write.mode("overwrite").saveAsTable(f"{database}.{table}")


def main(orders_csv: str, customers_csv: str, lake: str) -> None:
    """Run the three steps in one application."""
    spark = SparkSession.builder.appName("orders_medallion").getOrCreate()
    for database in ("silver", "gold"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    to_bronze(spark, orders_csv, f"{lake}/bronze/orders")
    to_bronze(spark, customers_csv, f"{lake}/bronze/customers")
    to_silver(spark, lake)
    to_gold(spark, lake)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
