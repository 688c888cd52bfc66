"""UPDATE with a condition and without one, and DELETE, of Delta tables that were there."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
accounts, limits = (f"delta.`{sys.argv[1]}/{name}`" for name in ("accounts", "limits"))
spark.sql(f"UPDATE {accounts} SET balance = balance * 1.1, status = 'active' WHERE id > 1")
spark.sql(f"DELETE FROM {accounts} WHERE balance < 0")
spark.sql(f"UPDATE {limits} SET cap = 100")
spark.stop()
