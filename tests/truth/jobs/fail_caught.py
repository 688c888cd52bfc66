"""Two writes to what is there, one refused and one ignored; a column that is not there; then a write that succeeds."""

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
unused = spark.read.csv("unused.csv", header=True, schema="id INT, cap INT")
orders.write.mode("ignore").parquet("there")
with suppress(AnalysisException):
    orders.write.parquet("also_there")
with suppress(AnalysisException):
    orders.join(unused, "id").select("no_such_column").write.parquet("never")
orders.selectExpr("id", "amount + 1 AS more").write.parquet("good")
spark.stop()
