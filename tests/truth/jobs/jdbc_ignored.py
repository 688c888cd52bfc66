"""Mode ignore: TOTALS is there and keeps its row, FRESH is not and gets two; then mode error on what is there."""

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

URL = "jdbc:h2:file:./shop"
SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
rates = spark.read.csv("rates.csv", header=True, schema="NAME STRING, TOTAL BIGINT")
rates.write.mode("ignore").jdbc(URL, "TOTALS", properties=SHOP)
rates.write.mode("ignore").jdbc(URL, "FRESH", properties=SHOP)
with suppress(AnalysisException):
    rates.write.jdbc(URL, "CUSTOMERS", properties=SHOP)
spark.stop()
