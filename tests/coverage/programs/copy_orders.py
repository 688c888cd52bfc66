"""Copy the orders of a home of Airflow."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv(f"{sys.argv[1]}/orders.csv", header=True).write.mode("overwrite").parquet(f"{sys.argv[1]}/copied")
spark.stop()
