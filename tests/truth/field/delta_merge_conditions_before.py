"""Makes the Delta table inventory."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    SELECT * FROM VALUES ('a', 'Atlas', 10D, 5, true), ('b', 'Ball', 4D, 2, true), ('c', 'Cup', 6D, 1, true),
                         ('d', 'Doll', 9D, 3, true), ('e', 'Easel', 20D, 0, false)
    AS t(sku, name, price, stock, active)
""").coalesce(1).write.format("delta").save(f"{sys.argv[1]}/inventory")
spark.stop()
