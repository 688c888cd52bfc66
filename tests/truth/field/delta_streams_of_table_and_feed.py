"""Adds orders to a Delta table, streams it to a new table, streams its change feed to files, and counts the table."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.createOrReplaceTempView("orders")
spark.sql("INSERT INTO src SELECT id, amount FROM orders")

copied = spark.readStream.table("src").where("amount > 5").writeStream.option("checkpointLocation", "state")
copied.trigger(availableNow=True).toTable("sink").awaitTermination()

changes = spark.readStream.option("readChangeFeed", True).option("startingVersion", 1).table("src")
feed = changes.where("_change_type = 'insert'").select("id").writeStream.option("checkpointLocation", "state2")
feed.format("parquet").trigger(availableNow=True).start("feed").awaitTermination()

spark.table("sink").groupBy("amount").count().write.parquet("hist")
spark.stop()
