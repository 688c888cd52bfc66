"""Rows of Delta tables are changed whose columns have names that look like several attributes of a plan."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.sql(f"UPDATE delta.`{home}/old` SET `No #12, old` = `No #12, old` + 1 WHERE id > 1")
spark.sql(f"DELETE FROM delta.`{home}/gone` WHERE `No #12, old` = 2")
spark.sql(f"UPDATE delta.`{home}/lots` SET `qty (x#3, y)` = z WHERE id > 1")
spark.stop()
