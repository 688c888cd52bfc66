"""Each partition is overwritten by its own path, the second one twice."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name, day in (("first", 1), ("wrong", 2), ("second", 2)):
    frame = spark.read.csv(f"{name}.csv", header=True, inferSchema=True)
    frame.write.mode("overwrite").parquet(f"sales/day={day}")
spark.stop()
