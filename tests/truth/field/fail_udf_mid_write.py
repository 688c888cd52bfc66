"""One output is written; then a Python function raises in the tasks of an append, and of a second output."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()


@f.udf("double")
def in_euro(amount: float, rate: float) -> float:
    """Convert an amount; a rate of zero is an error."""
    return amount / rate


orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount DOUBLE, currency STRING, status STRING")
rates = spark.read.csv("rates.csv", header=True, schema="currency STRING, rate DOUBLE")
orders.where("status = 'paid'").select("id", "amount").write.parquet("clean")
priced = orders.join(rates, "currency").select("id", in_euro("amount", "rate").alias("euro"))
try:
    priced.write.mode("append").parquet("history")
except (Py4JError, PySparkException) as error:
    print("the history stays as it is:", type(error).__name__)
priced.write.mode("overwrite").parquet("priced")
orders.select("id").write.parquet("never")
