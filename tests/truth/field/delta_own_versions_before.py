"""Makes the Delta table stock, by its path, in version 0."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("SELECT 'a' AS sku, 1 AS qty").write.format("delta").save(f"{sys.argv[1]}/stock")
spark.stop()
