"""One read of a hundred paths, and a union of a hundred reads."""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
schema = "id INT, amount INT"
spark.read.csv([f"many/f{number:03}.csv" for number in range(100)], schema=schema).write.parquet("from_many")
parts = [spark.read.csv(f"parts/p{number:03}.csv", schema=schema) for number in range(100)]
reduce(DataFrame.unionAll, parts).write.parquet("from_parts")
spark.stop()
