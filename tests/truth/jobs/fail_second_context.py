"""A first Spark context is stopped; a second one of the same program reads what the first wrote, and then breaks."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("first").getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.where("status = 'paid'").select("id", "amount").write.parquet("paid")
spark.stop()

spark = SparkSession.builder.appName("second").getOrCreate()
spark.read.parquet("paid").selectExpr("sum(amount) AS total").write.parquet("total")
spark.read.parquet("paid").selectExpr("IF(id > 1, raise_error('no'), id) AS id").write.parquet("broken")
