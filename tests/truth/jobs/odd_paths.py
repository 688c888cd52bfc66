"""Spaces, letters beyond ASCII, and ``%`` in paths and columns."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("in put/ørdre %41 + 100%.csv", header=True, inferSchema=True)
orders.withColumnRenamed("beløp i kr", "beløp").write.parquet("ut data/a b %20")
spark.read.parquet("ut data/a b %20").select("beløp").write.parquet("日本")
spark.read.csv("plus+and&more/x,y.csv", header=True, inferSchema=True).write.json("semi;colon")
spark.read.json("semi;colon").write.parquet("out/a=b;c#d&e+f")
spark.read.parquet("out/a=b;c#d&e+f").write.parquet("last")
spark.stop()
