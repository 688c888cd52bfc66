"""A Python UDF, a pandas UDF and a registered one, in the select, in a filter and in SQL."""

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
shout = f.udf(lambda text: text.upper(), "string")


@f.pandas_udf("double")
def taxed(amount: pd.Series) -> pd.Series:
    """Add a quarter."""
    return amount * 1.25


spark.udf.register("is_big", lambda amount: amount > 15, "boolean")
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
gross = orders.select(shout("name").alias("name"), taxed("amount").alias("gross"), f.initcap("city").alias("city"))
gross.write.parquet("gross")
orders.createOrReplaceTempView("orders")
spark.sql("SELECT order_id FROM orders WHERE is_big(amount)").write.parquet("big")
spark.stop()
