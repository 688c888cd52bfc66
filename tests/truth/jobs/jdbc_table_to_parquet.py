"""A JDBC table becomes Parquet: a filter that is pushed down, a renamed and a computed column."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
orders = spark.read.jdbc("jdbc:h2:file:./shop", "PUBLIC.ORDERS", properties=SHOP)
big = orders.where("AMOUNT > 10").select(
    "ID", f.col("CUSTOMER").alias("customer"), (f.col("AMOUNT") * 2).alias("twice")
)
big.write.parquet("big")
spark.stop()
