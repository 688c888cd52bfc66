"""Makes the Delta tables orders, in two versions, and totals."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for rows in ("(1, 'Ann', 10), (2, 'Bob', 20)", "(3, 'Ann', 30), (4, 'Cid', -1)"):
    orders = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, customer, amount)").coalesce(1)
    orders.write.format("delta").mode("append").save(f"{sys.argv[1]}/orders")
spark.sql("SELECT 'Ann' AS customer, 5L AS total").write.format("delta").save(f"{sys.argv[1]}/totals")
spark.stop()
