"""A stream is kept in memory under a name, and what is there is written to files."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.csv("in", header=True, schema="id INT, amount INT, state STRING")
paid = orders.where("state = 'paid'").select("id", "amount")
query = paid.writeStream.format("memory").queryName("recent").outputMode("append").trigger(availableNow=True).start()
query.awaitTermination()
spark.table("recent").where("amount > 1").write.parquet("kept")
spark.stop()
