"""Makes the Delta table orders with a change data feed: an insert, an update and a delete."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = f"delta.`{sys.argv[1]}/orders`"
spark.sql(f"""
    CREATE TABLE {orders} (id INT, shop STRING, amount INT) USING delta
    TBLPROPERTIES (delta.enableChangeDataFeed = true)
""")
spark.sql(f"INSERT INTO {orders} VALUES (1, 'n', 10), (2, 's', 20), (3, 's', 30)")
spark.sql(f"UPDATE {orders} SET amount = 25 WHERE id = 2")
spark.sql(f"DELETE FROM {orders} WHERE id = 1")
spark.stop()
