"""Four threads write four outputs from four inputs at the same time; then all are read into one."""

from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()


def load(number: int) -> None:
    """Write one output."""
    frame = spark.read.csv(f"in{number}.csv", header=True, inferSchema=True)
    frame.selectExpr("id", f"amount * {number} AS amount").write.parquet(f"out{number}")


with ThreadPoolExecutor(4) as pool:
    list(pool.map(load, range(4)))
reduce(DataFrame.unionAll, [spark.read.parquet(f"out{number}") for number in range(4)]).write.parquet("all")
spark.stop()
