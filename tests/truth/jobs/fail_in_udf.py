"""One output is written; a Python function of the next write raises while its tasks write; nobody catches it."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.select("id", "status").write.parquet("good")


@udf("int")
def checked(amount: int) -> int:
    """Refuse what is too much."""
    if amount > 25:
        raise ValueError("over")
    return amount


orders.repartition(2).select("id", checked("amount").alias("amount")).write.parquet("bad")
spark.stop()
