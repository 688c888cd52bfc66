"""Adds orders to an Iceberg table, and copies all rows that were ever inserted out of a view of its changelog."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.createOrReplaceTempView("orders")
spark.sql("INSERT INTO ice.db.t SELECT id, amount FROM orders")
spark.sql("CALL ice.system.create_changelog_view(table => 'db.t', changelog_view => 'changes')")
spark.sql("SELECT id, amount FROM changes WHERE _change_type = 'INSERT'").write.parquet("feed")
spark.stop()
