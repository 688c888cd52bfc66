"""A Spark program that writes one path, and fails in the write of the next."""

import sys

from pyspark.sql import SparkSession

orders, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.read.schema("order_id int, amount int").option("header", True).csv(orders)
rows.write.mode("overwrite").parquet(f"{out}/kept")
rows.selectExpr("order_id", "assert_true(amount < 30, 'an amount over 30') AS checked").write.parquet(f"{out}/checked")
