"""Orders of the database and rates of a file: totals replace a table's rows, details go to two other tables."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

URL = "jdbc:h2:file:./shop"
SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
orders = spark.read.jdbc(URL, "ORDERS", properties=SHOP)
rates = spark.read.csv("rates.csv", header=True, schema="customer INT, rate INT, note STRING")
priced = orders.join(rates, rates.customer == orders.CUSTOMER).withColumn("price", f.col("AMOUNT") * f.col("rate"))

totals = priced.groupBy("note").agg(f.sum("price").alias("TOTAL")).withColumnRenamed("note", "NAME")
totals.write.mode("overwrite").option("truncate", True).jdbc(URL, "TOTALS", properties=SHOP)
details = priced.select("ID", f.col("price").alias("PRICE"))
details.where("ID < 3").write.mode("append").jdbc(URL, "DETAILS", properties=SHOP)
details.where("ID >= 3").write.mode("append").jdbc(URL, "DETAILS", properties=SHOP)
details.write.mode("overwrite").jdbc(URL, "DETAILS_COPY", properties=SHOP)
spark.stop()
