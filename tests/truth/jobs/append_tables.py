"""Makes tables by appending to what is not there, and appends again."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT")
orders.write.mode("append").saveAsTable("made")
orders.write.mode("append").saveAsTable("twice")
orders.write.mode("append").saveAsTable("twice")
orders.write.insertInto("made")
spark.stop()
