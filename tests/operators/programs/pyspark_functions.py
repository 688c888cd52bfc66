"""Functions that a ``PySparkOperator`` of the tests runs; each gets the folder of the test."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def doubled(folder: str, spark: Any) -> int:
    """Write the doubled amounts of the orders, and return how many there are."""
    spark.read.json(f"{folder}/orders").selectExpr("id", "amount * 2 AS doubled").write.parquet(f"{folder}/doubled")
    return int(spark.read.parquet(f"{folder}/doubled").count())


def half_done(folder: str, spark: Any) -> None:
    """Write one table, and fail."""
    doubled(folder, spark)
    raise ValueError("no more: password=hunter2")


def declared(folder: str, spark: Any) -> None:
    """Declare what no plan shows."""
    from spark_lineage import declare

    doubled(folder, spark)
    declare.wrote("kafka://broker:9092/alerts", inputs=[declare.read(f"{folder}/thresholds")])


def endless(folder: str, spark: Any) -> None:
    """Write one table, say so, and go on for ever."""
    doubled(folder, spark)
    Path(folder, "written").write_text(str(os.getpid()))
    spark.range(0, 10**14).where("id % 7 = rand()").write.parquet(f"{folder}/never")


def collecting(folder: str, spark: Any) -> None:
    """Write one table, say so, and collect what does not come."""
    doubled(folder, spark)
    Path(folder, "written").write_text(str(os.getpid()))
    spark.range(0, 10**14).where("id % 7 = rand()").collect()


def asleep(folder: str, spark: Any) -> None:
    """Write one table, say so, and wait for something that does not come."""
    doubled(folder, spark)
    Path(folder, "written").write_text(str(os.getpid()))
    time.sleep(100)


def cleaning(folder: str, spark: Any) -> None:
    """Write one table, and another one when the time is over."""
    try:
        asleep(folder, spark)
    finally:
        again(folder, spark, "cleaned")


def cleaning_call(folder: str, spark: Any) -> None:
    """Write one table, and another one when the time is over within a query."""
    try:
        endless(folder, spark)
    finally:
        again(folder, spark, "cleaned")


def going_on(folder: str, spark: Any) -> str:
    """Give a query only so much time, and go on."""
    with suppress(BaseException):
        collecting(folder, spark)
    again(folder, spark, "next")
    return "done"


def lost(folder: str, spark: Any) -> None:
    """Write one table, and lose the worker."""
    doubled(folder, spark)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def again(folder: str, spark: Any, name: str = "doubled") -> None:
    """Overwrite the doubled amounts."""
    doubled = spark.read.json(f"{folder}/orders").selectExpr("id", "amount * 2 AS doubled")
    doubled.write.mode("overwrite").parquet(f"{folder}/{name}")


def streamed(folder: str, spark: Any) -> None:
    """Write the orders that are there as a stream."""
    orders = spark.readStream.schema("id int, amount int").json(f"{folder}/orders")
    writing = orders.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    writing.trigger(availableNow=True).start(f"{folder}/streamed").awaitTermination()


def unresolved(folder: str, spark: Any) -> None:
    """Write one table, and query one that is not there."""
    doubled(folder, spark)
    spark.sql("SELECT nothing FROM nowhere").show()
