"""Makes the Delta table stock, by its path, in versions 0 and 1."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for row in ("('a', 1)", "('b', 2)"):
    rows = spark.sql(f"SELECT * FROM VALUES {row} AS t(sku, qty)")
    rows.write.format("delta").mode("append").save(f"{sys.argv[1]}/stock")
spark.stop()
