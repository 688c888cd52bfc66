"""The pandas API on Spark filters, computes and groups; a small table goes through pandas and back."""

import pyspark.pandas as ps
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sales = ps.read_parquet("sales", index_col="id")
big = sales[sales["amount"] > 10.0]
big["gross"] = big["amount"] * big["rate"]
big[["shop", "gross"]].to_parquet("gross", mode="overwrite", index_col="id")
big.groupby("shop")[["gross"]].sum().to_parquet("totals", mode="overwrite", index_col="shop")

limits = spark.read.csv("limits.csv", header=True, schema="shop STRING, cap INT").toPandas()
limits["cap"] = limits["cap"] * 2
spark.createDataFrame(limits).write.mode("overwrite").parquet("caps")
spark.stop()
