"""Writes today's partition by its path, for the second time, and compares it with yesterday's of the same dataset."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
counts = spark.read.csv("counts.csv", header=True, schema="sku STRING, qty INT, shelf STRING")
counts.where("shelf <> 'lost'").select("sku", "qty").write.mode("overwrite").parquet("stock/day=2024-01-02")

today = spark.read.parquet("stock/day=2024-01-02")
yesterday = spark.read.parquet("stock/day=2024-01-01")
growth = today.alias("t").join(yesterday.alias("y"), f.expr("t.sku = y.sku"))
growth.selectExpr("t.sku", "t.qty AS qty_today", "y.qty AS qty_before").write.parquet("growth")
yesterday.where("qty > 5").select("sku").write.json("many_yesterday")
today.groupBy().agg(f.sum("qty").alias("qty")).write.json("today")
spark.stop()
