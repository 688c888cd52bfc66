"""Rows are appended to a Delta table; then the version of before is read again, and both are compared."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
fresh = spark.read.csv("fresh.csv", header=True, schema="code STRING, pieces INT")
fresh.selectExpr("code AS sku", "pieces AS qty").write.format("delta").mode("append").save(f"{home}/stock")

old = spark.read.format("delta").option("versionAsOf", 1).load(f"{home}/stock")
old.select("sku", "qty").write.parquet("before")
spark.sql(f"SELECT sku FROM delta.`{home}/stock` VERSION AS OF 0").write.json("first")
spark.read.format("delta").option("versionAsOf", 2).load(f"{home}/stock").select("qty").write.parquet("after")
spark.stop()
