"""The Spark program of the tests: reads orders, writes them, and then ends in the way that it is told."""

import os
import signal
import sys
import time
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
if mode == "task_failure":
    frame.createOrReplaceTempView("orders")
    broken = spark.sql("SELECT order_id, raise_error('broken password=hunter2') AS x FROM orders")
    broken.write.mode("overwrite").parquet(f"{out}/{mode}_broken")
elif mode == "python_exception":
    raise RuntimeError("failed after the write, password=hunter2")
elif mode == "exit_1":
    sys.exit(1)
elif mode == "sigkill":
    os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
    time.sleep(1)
elif mode == "retry":
    marker = Path(out, f"{mode}_was_here")
    if not marker.exists():
        marker.touch()
        raise RuntimeError("fails the first time")
elif mode == "timeout":
    # Sleeps in the JVM: the write has begun and does not end by itself.
    slow = spark.range(0, 600, 1, 1).selectExpr("java_method('java.lang.Thread', 'sleep', 500L) AS x", "id")
    slow.write.mode("overwrite").parquet(f"{out}/{mode}_slow")
spark.stop()
