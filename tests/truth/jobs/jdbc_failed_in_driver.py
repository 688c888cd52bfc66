"""One database cannot be reached, another refuses the table's name: both caught. A third write succeeds."""

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
rates = spark.read.csv("rates.csv", header=True, schema="customer INT, rate INT")
for url, table in (
    ("jdbc:h2:tcp://127.0.0.1:1/far", "RATES"),
    ("jdbc:h2:file:./shop", "NO_SUCH_SCHEMA.RATES"),
    ("jdbc:h2:file:./shop", "RATES"),
):
    try:
        rates.write.mode("append").jdbc(url, table, properties=SHOP)
    except Py4JJavaError:
        continue
spark.stop()
