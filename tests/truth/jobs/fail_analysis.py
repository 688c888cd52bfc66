"""The program breaks on a column that is not there, before Spark has done anything."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
spark.read.parquet("history").join(orders, "id").select("no_such_column").write.parquet("out")
