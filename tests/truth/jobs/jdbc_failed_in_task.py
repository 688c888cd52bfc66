"""The first table is filled; rows of the second write break a task half-way, and nobody catches it."""

from pyspark.sql import SparkSession

URL = "jdbc:h2:file:./shop"
SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
orders = spark.read.jdbc(URL, "ORDERS", properties=SHOP)
orders.select("ID", "AMOUNT").write.jdbc(URL, "GOOD", properties=SHOP)
broken = orders.selectExpr("ID", "IF(ID > 2, raise_error('no such amount'), AMOUNT) AS AMOUNT")
broken.write.jdbc(URL, "BAD", properties=SHOP)
spark.stop()
