"""A Hive metastore with a database ``shop`` and its tables ``orders`` and ``customers``."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE shop")
spark.sql("CREATE TABLE shop.orders USING parquet AS SELECT 1 AS order_id, 1 AS customer_id, 10 AS amount")
spark.sql("CREATE TABLE shop.customers (customer_id INT, name STRING) STORED AS ORC")
spark.sql("INSERT INTO shop.customers VALUES (1, 'Ann'), (2, 'Bob')")
spark.stop()
