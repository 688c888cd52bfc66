"""Tables of one name in two databases, told apart by USE alone; a third database is dropped with all in it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("north.csv", header=True, inferSchema=True).createOrReplaceTempView("north")
spark.read.csv("south.csv", header=True, inferSchema=True).createOrReplaceTempView("south")
for statement in (
    "CREATE DATABASE shop",
    "CREATE TABLE sales USING parquet AS SELECT id, amount FROM north",
    "USE shop",
    "CREATE TABLE sales USING parquet AS SELECT id, amount FROM south",
    "CREATE DATABASE scratch",
    "CREATE TABLE scratch.joined USING parquet AS SELECT s.id, d.amount FROM sales s JOIN default.sales d USING (id)",
    "CREATE TABLE matches USING parquet AS SELECT id FROM scratch.joined WHERE amount > 5",
    "DROP DATABASE scratch CASCADE",
    "USE default",
    "INSERT INTO sales SELECT id, amount FROM shop.sales",
):
    spark.sql(statement)
spark.stop()
