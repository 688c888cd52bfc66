"""Runs a SparkJob, waits until a file is there, and runs another."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def main(ready: Path, released: Path) -> None:
    spark = SparkSession.builder.appName("held").getOrCreate()
    spark.sparkContext.parallelize([1]).count()
    ready.touch()
    while not released.exists():
        time.sleep(0.1)
    spark.sparkContext.parallelize([1, 2]).count()
    spark.stop()


main(Path(sys.argv[1]), Path(sys.argv[2]))
