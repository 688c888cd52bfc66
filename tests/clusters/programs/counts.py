"""Counts the orders of each customer, and then ends as it is told."""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

orders, out, end = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.csv(orders, header=True).groupBy("customer").count().write.mode("overwrite").parquet(out)
match end:
    case "exception":
        raise RuntimeError("failed after the write, password=hunter2")
    case "declares":
        from spark_lineage import declare

        declare.wrote(f"{out}_report", rows=2)
    case "sys_exit":
        sys.exit(1)
    case "second_attempt" if "_02_" in os.environ["CONTAINER_ID"]:
        pass
    case held if held.startswith("/"):
        while not Path(held).exists():
            time.sleep(0.2)
    case "killed" | "second_attempt":
        while True:  # a program that does not use Spark does not notice in client mode
            spark.range(1).count()
            time.sleep(1)
