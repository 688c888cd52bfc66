"""The Spark program of the table of ends: writes orders, and then ends, or waits to be ended, as it is told."""

import os
import sys
import time
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

mode, orders, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.schema("order_id int, amount int").option("header", True).csv(orders)
frame.write.mode("overwrite").parquet(f"{out}/{mode}")
broken = frame.selectExpr("CAST(raise_error('broken password=hunter2') AS INT) AS x")  # Spark 3.5 writes no void
match mode:
    case "task_failure":
        broken.write.mode("overwrite").parquet(f"{out}/{mode}_broken")
    case "caught":
        try:
            broken.write.mode("overwrite").parquet(f"{out}/{mode}_broken")
        except (PySparkException, Py4JJavaError):
            spark.stop()
    case "python_exception":
        raise RuntimeError("failed after the write, password=hunter2")
    case "sys_exit":
        sys.exit(3)
    case "os_exit":
        os._exit(4)
    case "oom":
        kept = spark._jvm.java.util.ArrayList()
        while True:
            kept.add(bytearray(64 * 1024 * 1024))
    case "success":
        spark.stop()
    case "timeout":
        # Sleeps in the JVM: the write has begun and does not end by itself.
        slow = spark.range(0, 600, 1, 1).selectExpr("java_method('java.lang.Thread', 'sleep', 500L) AS x", "id")
        slow.write.mode("overwrite").parquet(f"{out}/{mode}_slow")
    case _:
        # Whoever ends it needs to know whom; a Python driver that just sleeps does not see that its JVM is gone.
        pids = Path(out, f"{mode}.pids")
        pids.with_suffix(".partial").write_text(f"{os.getpid()} {spark._jvm.java.lang.ProcessHandle.current().pid()}")
        pids.with_suffix(".partial").rename(pids)
        time.sleep(600)
