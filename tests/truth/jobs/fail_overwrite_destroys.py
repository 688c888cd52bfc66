"""An overwrite breaks in a task, after it deleted the former content; it is caught, and the program goes on."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
spark.read.parquet("target").write.parquet("copy")
broken = orders.selectExpr("id", "IF(amount > 15, raise_error('too much'), amount) AS amount")
try:
    broken.write.mode("overwrite").parquet("target")
except (PySparkException, Py4JJavaError):
    orders.where("amount <= 15").select("id").write.mode("overwrite").parquet("rescued")
spark.stop()
