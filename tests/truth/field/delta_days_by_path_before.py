"""Makes the Delta tables sales and visits, in partitions by day, and stock, by their paths."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = "('a', 1, '2024-01-01'), ('a', 2, '2024-01-02'), ('b', 3, '2024-01-03')"
for name, columns in (("sales", "sku, qty, day"), ("visits", "page, hits, day")):
    made = spark.sql(f"SELECT * FROM VALUES {rows} AS t({columns})")
    made.write.format("delta").partitionBy("day").save(f"{home}/{name}")
spark.sql("SELECT 'a' AS sku, 1 AS qty").write.format("delta").save(f"{home}/stock")
spark.stop()
