"""Makes the Delta table sales, in partitions by day."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = "('2024-01-01', 1, 1L), ('2024-01-02', 1, 2L), ('2024-01-03', 1, 3L)"
sales = spark.sql(f"SELECT * FROM VALUES {rows} AS t(day, shop, amount)")
sales.write.format("delta").partitionBy("day").save(f"{sys.argv[1]}/sales")
spark.stop()
