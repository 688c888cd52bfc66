"""Empty copies of orders: a directory and a table with their columns, by conditions that no row can meet."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.createOrReplaceTempView("orders")
orders.where("1 = 0").write.parquet("none")
spark.sql("CREATE TABLE empty USING parquet AS SELECT id, amount FROM orders WHERE false")
spark.stop()
