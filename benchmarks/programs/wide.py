"""The second Spark program of ``benchmarks/task.py``: joins of six tables into one of 660 columns, with adaptive plans.

Its plans are long, and rewritten while they run: what a listener and an event log pay for. Its usage is that of
``warehouse.py``.
"""

from __future__ import annotations

import sys
import time
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

TABLES, COLUMNS, KEYS = 6, 110, 1000


def prepare(spark: SparkSession, inputs: str, rows: int) -> None:
    """Make six tables of numbers alone."""
    for table in range(TABLES):
        columns = [f"pmod(hash(id, {column}), 1000) AS t{table}_c{column}" for column in range(COLUMNS - 1)]
        made = spark.range(min(rows, KEYS)).selectExpr("id AS key", *columns)
        made.write.mode("overwrite").parquet(f"{inputs}/wide_{table}")


def run(spark: SparkSession, inputs: str, steps: int, seconds: float) -> None:
    """Make ``wide_N`` from all six."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    started = time.monotonic()
    for step in range(steps):
        time.sleep(max(0.0, started + step * seconds - time.monotonic()))
        frames = [spark.read.parquet(f"{inputs}/wide_{table}") for table in range(TABLES)]
        joined: DataFrame = reduce(lambda left, right: left.join(right, "key"), frames)
        joined.where(f"t0_c0 <> {step}").write.saveAsTable(f"wide_{step}")


def main(action: str, inputs: str, *arguments: str) -> None:
    """Do what the first argument says."""
    spark = SparkSession.builder.appName("wide").getOrCreate()
    if action == "prepare":
        prepare(spark, inputs, int(arguments[0]))
    else:
        run(spark, inputs, int(arguments[0]), float(arguments[1]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
