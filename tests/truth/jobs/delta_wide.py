"""UPDATE of a Delta table with more columns than Spark prints of a list by default (25)."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql(f"UPDATE delta.`{sys.argv[1]}/wide` SET c25 = concat(c1, c24), c26 = 'x' WHERE id > 1")
spark.stop()
