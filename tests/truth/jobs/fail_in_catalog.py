"""Tables whose files are written before the catalog refuses their names; the program catches that."""

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT")
with suppress(AnalysisException):
    orders.write.saveAsTable("`with,comma`")
orders.write.saveAsTable("good")
spark.stop()
