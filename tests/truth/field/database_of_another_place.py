"""Tables in a database that an earlier application has put outside of the warehouse."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE IF NOT EXISTS shop")
spark.read.csv("sales.csv", header=True, schema="id INT, amount INT").createOrReplaceTempView("sales")
spark.sql("CREATE TABLE shop.big USING parquet AS SELECT id FROM sales WHERE amount > 5")
spark.sql("CREATE TABLE shop.sold (id INT, amount INT) USING parquet")
spark.sql("INSERT INTO shop.sold SELECT id, amount FROM sales")
spark.sql("CREATE TABLE shop.top STORED AS ORC AS SELECT max(amount) AS top FROM shop.sold")
spark.sql("CREATE TABLE shop.empty (id INT) USING parquet")
spark.stop()
