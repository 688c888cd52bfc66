"""Builds a new version of a table that is there, and swaps the two by renames."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("""
    CREATE TABLE shop.orders_new USING parquet AS
    SELECT o.order_id, c.name, o.amount * 2 AS amount FROM shop.orders o JOIN shop.customers c USING (customer_id)
""")
spark.sql("ALTER TABLE shop.orders RENAME TO shop.orders_old")
spark.sql("ALTER TABLE shop.orders_new RENAME TO shop.orders")
spark.sql("DROP TABLE shop.orders_old")
spark.stop()
