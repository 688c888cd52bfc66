"""A Spark program that copies orders and ends only after all its siblings have copied theirs."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

orders, out, name, siblings = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.schema("order_id int, amount int").option("header", True).csv(orders)
frame.write.parquet(f"{out}/{name}")
deadline = time.monotonic() + 60
while len(list(Path(out).glob("*/_SUCCESS"))) < int(siblings):
    if time.monotonic() > deadline:
        raise TimeoutError("the siblings did not come")
    time.sleep(0.1)
spark.stop()
