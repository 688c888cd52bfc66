"""The Spark program of ``benchmarks/task.py``: a night's work of SQL, one table a step, every third one a report.

Usage: ``warehouse.py prepare INPUTS ROWS`` makes the inputs, the same rows each time.
``warehouse.py run INPUTS STEPS SECONDS`` makes the tables below ``spark.sql.warehouse.dir``; a step begins ``SECONDS``
after the one before it, or at once where that one took longer.
"""

# ruff: noqa: S608 (the SQL is made of numbers)

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

CUSTOMERS_PER_ROW = 0.05
DAYS = 365
TABLES = ("orders", "customers")


def prepare(spark: SparkSession, inputs: str, rows: int) -> None:
    """Make orders and customers of numbers alone."""
    customers = int(rows * CUSTOMERS_PER_ROW) + 1
    spark.sql(f"""
        SELECT id AS order_id, hash(id) % {customers} AS customer_id, id % {DAYS} AS day,
               pmod(hash(id, 1), 10000) / 100 AS amount, pmod(hash(id, 2), 5) AS status
        FROM range({rows})""").write.mode("overwrite").parquet(f"{inputs}/orders")
    spark.sql(f"""
        SELECT id AS customer_id, concat('customer ', id) AS name, pmod(hash(id, 3), 200) AS country
        FROM range({customers})""").write.mode("overwrite").parquet(f"{inputs}/customers")


def run(spark: SparkSession, inputs: str, steps: int, seconds: float) -> None:
    """Make ``sales_N`` from the inputs, and after each third one a report on the last."""
    for table in TABLES:
        spark.read.parquet(f"{inputs}/{table}").createOrReplaceTempView(table)
    started = time.monotonic()
    for step in range(steps):
        time.sleep(max(0.0, started + step * seconds - time.monotonic()))
        spark.sql(f"""
            CREATE TABLE sales_{step} USING parquet AS
            SELECT c.country, c.name, o.day, sum(o.amount) AS revenue, count(*) AS orders,
                   max(o.amount) AS largest, approx_count_distinct(o.order_id) AS distinct_orders
            FROM orders o JOIN customers c ON o.customer_id = c.customer_id
            WHERE o.status <> {step % 5} AND o.day BETWEEN {step} AND {DAYS - step}
            GROUP BY c.country, c.name, o.day""")
        if step % 3 == 0:
            spark.sql(f"""
                CREATE TABLE report_{step} USING parquet AS
                SELECT country, revenue, rank() OVER (ORDER BY revenue DESC) AS place
                FROM (SELECT country, sum(revenue) AS revenue FROM sales_{step} GROUP BY country)""")
            print("countries:", spark.table(f"report_{step}").count())


def main(action: str, inputs: str, *arguments: str) -> None:
    """Do what the first argument says."""
    spark = SparkSession.builder.appName("warehouse").getOrCreate()
    if action == "prepare":
        prepare(spark, inputs, int(arguments[0]))
    else:
        run(spark, inputs, int(arguments[0]), float(arguments[1]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
