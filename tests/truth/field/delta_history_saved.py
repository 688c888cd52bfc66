"""The history and the detail of a Delta table, and the names of all tables, are written to files."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.select("id").write.format("delta").saveAsTable("t")
spark.sql("DESCRIBE HISTORY t").select("version", "operation").write.parquet("history")
spark.sql("SHOW TABLES").write.json("tables")
spark.sql("DESCRIBE DETAIL t").select("numFiles").write.mode("append").parquet("detail")
spark.stop()
