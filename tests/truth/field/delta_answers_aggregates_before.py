"""Makes the Delta tables sales, other, third, fourth, and days, which is partitioned."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("sales", "other", "third", "fourth"):
    rows = spark.range(10).coalesce(1).selectExpr("id", "id * 2 AS v", "CAST(id % 2 AS STRING) AS kind")
    rows.write.format("delta").save(f"{sys.argv[1]}/{name}")
days = spark.range(4).coalesce(1).selectExpr("id", "concat('2024-01-0', id % 2 + 1) AS day")
days.write.format("delta").partitionBy("day").save(f"{sys.argv[1]}/days")
spark.stop()
