"""Makes the Delta table stock, by its path, in versions 0 and 1."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
stock = f"delta.`{sys.argv[1]}/stock`"
spark.sql(f"CREATE TABLE {stock} (sku STRING, qty INT) USING delta")
spark.sql(f"INSERT INTO {stock} VALUES ('a', 1)")
spark.stop()
