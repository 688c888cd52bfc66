"""Rows are added to directories, one of which was there before; then each is read as a whole."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
fresh = spark.read.csv("fresh.csv", header=True, schema="code STRING, pieces INT")
fresh = fresh.selectExpr("code AS sku", "pieces AS qty")
fresh.write.mode("append").parquet("stock")
spark.read.parquet("stock").select("qty").write.parquet("stocked")
fresh.write.mode("append").parquet("made")
spark.read.parquet("made").select("qty").write.parquet("again")
fresh.write.mode("append").json("log")
spark.read.schema("sku STRING, qty INT").json("log").groupBy("sku").count().write.csv("counts")
fresh.write.mode("append").json("fresh_log")
spark.read.schema("sku STRING, qty INT").json("fresh_log").groupBy("sku").count().write.csv("fresh_counts")
spark.stop()
