"""Ranks, lags and sums over windows; a filter on a rank of the first result makes a second."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
by_day = Window.partitionBy("customer").orderBy("day")
ranked = orders.select(
    "order_id",
    f.row_number().over(by_day).alias("number"),
    f.lag("amount").over(by_day).alias("previous"),
    f.sum("amount").over(Window.partitionBy("customer")).alias("total"),
)
ranked.write.parquet("ranked")
spark.read.parquet("ranked").where("number = 2").select("order_id", "previous").write.parquet("second_orders")
spark.stop()
