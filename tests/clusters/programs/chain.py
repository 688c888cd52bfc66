"""Writes a chain of datasets below a directory, each from the one before, and ends as it is told."""

import os
import signal
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

orders, out, kind, *levels = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
for level in levels:
    spark.sparkContext.setLogLevel(level)


def write(number: int) -> None:
    """Write one of the chain, with a row less than the one before."""
    source = spark.read.parquet(f"{out}/step{number - 1}") if number > 1 else spark.read.csv(orders, header=True)
    source.where(f"id > {number}").write.parquet(f"{out}/step{number}")


match kind:
    case "chain" | "declares" | "hides":
        if kind == "hides":
            # The listener can write no event from now on, whatever the level of the log is.
            events = Path(os.environ["LOG_DIRS"], "openlineage-events.ndjson")
            events.unlink(missing_ok=True)
            events.mkdir()
        for step in range(1, 7):
            write(step)
        if kind == "declares":
            from spark_lineage import declare

            declare.wrote(f"{out}/report", rows=2)
    case "fails":
        write(1)
        write(2)
        raise RuntimeError("failed after two writes")
    case "killed":
        write(1)
        write(2)
        # It never ends.
        spark.range(1).rdd.map(lambda row: time.sleep(600) or (1,)).toDF("id int").write.parquet(f"{out}/never")
    case "queries":
        read = spark.read.csv(orders, header=True)
        for query in range(200):
            if query % 20:
                read.where(f"id > {query % 9}").collect()
            else:
                read.where(f"id > {query % 9}").write.parquet(f"{out}/query{query}")
    case "attempts":
        orders_of = spark.read.csv(orders, header=True)
        is_first = "_01_" in os.environ["CONTAINER_ID"]
        for step in (1, 2) if is_first else ():
            orders_of.where(f"id > {step}").write.parquet(f"{out}/step{step}")
        if is_first:
            os.kill(os.getppid(), signal.SIGKILL)
        for step in range(2, 7):
            orders_of.where(f"id > {step}").write.parquet(f"{out}/again{step}")
