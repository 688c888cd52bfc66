"""Does what a status can tell of: jobs and SQL that succeed and fail, streams; lives until a file is there."""

import contextlib
import sys
import time
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

EXECUTIONS = 25  # more than Spark gives where it is not told how many


def main(ready: Path, released: Path) -> None:
    spark = SparkSession.builder.appName("observed").getOrCreate()
    for _ in range(EXECUTIONS):
        spark.range(2).collect()
    with contextlib.suppress(PySparkException, Py4JJavaError):  # the second up to Spark 3.5
        spark.sql("SELECT raise_error('the moon is full')").collect()
    # Two micro-batches, after which it ends by itself: one that is stopped in the middle has a job that failed.
    clicks = ready.with_name("clicks")
    clicks.mkdir()
    for number in range(2):
        (clicks / f"{number}.txt").write_text("click")
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(clicks.as_uri())
    rows.writeStream.queryName("clicks").format("noop").trigger(availableNow=True).start().awaitTermination()
    ready.touch()
    while not released.exists():
        time.sleep(0.1)
    spark.stop()


main(Path(sys.argv[1]), Path(sys.argv[2]))
