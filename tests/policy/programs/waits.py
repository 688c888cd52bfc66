"""A Spark program that copies orders, and ends only when it is released."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

orders, out, released = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.schema("order_id int, amount int").option("header", True).csv(orders).write.parquet(out)
deadline = time.monotonic() + 240
while not Path(released).exists():
    if time.monotonic() > deadline:
        raise TimeoutError("nobody released it")
    time.sleep(0.1)
spark.stop()
