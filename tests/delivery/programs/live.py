"""The Spark program of the live tests: copies a directory of texts, and fails then if it is told to."""

import sys

from pyspark.sql import SparkSession

mode, source, target = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.text(source).write.mode("overwrite").text(target)
if mode == "fail":
    raise RuntimeError("failed after the write")
spark.stop()
