"""Writes two sources into one Hudi table, one after the other."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
work = sys.argv[1]
options = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "at",
}
for name in ("online", "shops"):
    rows = spark.read.parquet(f"{work}/{name}.parquet")
    rows.write.format("hudi").options(**options).mode("append").save(f"{work}/orders")
spark.stop()
