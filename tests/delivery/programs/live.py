"""The Spark program of the live tests: copies a directory of texts, and then ends, fails or waits, as it is told."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

mode, source, target, marker = sys.argv[1:]
LIMIT_SECONDS = 300
spark = SparkSession.builder.getOrCreate()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.1)


if mode == "stream":
    lines = spark.readStream.text(source)
    query = lines.writeStream.option("checkpointLocation", f"{target}_checkpoint").start(target, format="text")
    while not query.recentProgress:
        time.sleep(0.2)
    Path(f"{marker}.reached").touch()
    time.sleep(4)
    query.stop()
else:
    spark.read.text(source).write.mode("overwrite").text(target)
if mode == "fail":
    raise RuntimeError("failed after the write")
if mode == "fail_once" and not Path(marker).exists():
    Path(marker).touch()
    raise RuntimeError("failed the first time")
if mode == "wait":
    Path(f"{marker}.reached").touch()
    wait_for(Path(f"{marker}.released"))
spark.stop()
