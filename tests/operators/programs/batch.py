"""A program of the tests that runs elsewhere: it doubles the orders of a folder, and ends as it is asked to."""

import os
import signal
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

folder, how, *flag = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if how == "late":
    if flag:
        Path(*flag).touch()
    time.sleep(15)
if how == "together":
    own, other = map(Path, flag)
    own.touch()
    while not other.exists():
        time.sleep(0.1)
orders = spark.read.json(f"{folder}/orders")
orders.selectExpr("id", "amount * 2 AS doubled").write.mode("overwrite").parquet(f"{folder}/doubled")
if how == "fail":
    raise ValueError("no more: password=hunter2")
if how == "die":
    # The JVM, as a node that runs out of memory does.
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
if how == "endless":
    Path(*(flag or (folder, "written"))).touch()
    spark.range(0, 10**14).where("id % 7 = rand()").write.parquet(f"{folder}/never")
spark.stop()
