"""Two threads write at once: one of them breaks in its second write, and nobody asks; the program ends well."""

from concurrent.futures import ThreadPoolExecutor, wait

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
customers = spark.read.csv("customers.csv", header=True, schema="id INT, name STRING")


def first() -> None:
    """Write one output, then break in a task."""
    orders.select("id").write.parquet("ids")
    orders.selectExpr("IF(amount > 15, raise_error('too much'), amount) AS amount").write.parquet("broken")


def second() -> None:
    """Write one output and another from it."""
    customers.write.parquet("names")
    spark.read.parquet("names").selectExpr("upper(name) AS name").write.parquet("upper")


with ThreadPoolExecutor(2) as pool:
    wait([pool.submit(first), pool.submit(second)])
spark.stop()
