"""The Spark program of the tests: reads orders and writes them, unless it is told otherwise."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

mode, orders, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if mode == "no_lineage":
    spark.range(5).selectExpr("id").collect()
    spark.stop()
    sys.exit()
frame = spark.read.schema("order_id int, amount int").option("header", True).csv(orders)
frame.write.mode("overwrite").parquet(f"{out}/{mode}")
if mode == "retry":
    marker = Path(out, f"{mode}_was_here")
    if not marker.exists():
        marker.touch()
        raise RuntimeError("fails the first time, password=hunter2")
spark.stop()
