"""Delta tables at paths that hold what looks like another option of the write, and the marks of a list."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sales = spark.read.csv("sales.csv", header=True, inferSchema=True)
sales.select("id").write.format("delta").save("day, hour=1")
sales.select("amount").write.format("delta").option("mergeSchema", "true").save("a, b (c)")
spark.stop()
