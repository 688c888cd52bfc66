"""A Hive metastore with a database outside of the warehouse."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql(f"CREATE DATABASE shop LOCATION '{sys.argv[1]}/lake/shop'")
spark.stop()
