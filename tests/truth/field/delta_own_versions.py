"""A Delta table that a task overwrites twice: its older versions, the task's own among them, are read after that."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
first = spark.read.csv("first.csv", header=True, schema="item STRING, pieces INT")
second = spark.read.csv("second.csv", header=True, schema="code STRING, amount INT")
first.selectExpr("item AS sku", "pieces AS qty").write.format("delta").mode("overwrite").save(f"{home}/stock")
second.selectExpr("code AS sku", "amount AS qty").write.format("delta").mode("overwrite").save(f"{home}/stock")
for version, name in enumerate(("oldest", "former", "latest")):
    stock = spark.read.format("delta").option("versionAsOf", version).load(f"{home}/stock")
    stock.select("qty").write.parquet(name)
spark.stop()
