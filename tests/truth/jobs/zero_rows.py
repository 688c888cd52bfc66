"""An overwrite with what turns out to be no row at all."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
orders.where("amount > 1000").select("order_id").write.mode("overwrite").parquet("huge")
spark.stop()
