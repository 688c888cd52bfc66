"""RDDs: single text files are read, joined and saved; one is only counted."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
orders = context.textFile("in/orders.txt").map(lambda line: tuple(line.split(",")))
names = context.textFile("names/names.txt").map(lambda line: tuple(line.split(",")))
orders.join(names).map(str).saveAsTextFile("out/joined")
context.textFile("in/counted.txt").count()
spark.stop()
