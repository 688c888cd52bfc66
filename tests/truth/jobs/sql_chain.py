"""CREATE TABLE AS SELECT, INSERT, RENAME, another CTAS from the renamed table, DROP, and RENAME of the result."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True).createOrReplaceTempView("orders_csv")
spark.read.csv("more.csv", header=True).createOrReplaceTempView("more_csv")
spark.sql("CREATE DATABASE shop")
spark.sql("""
    CREATE TABLE shop.orders USING parquet AS
    SELECT order_id, CAST(amount AS DOUBLE) AS amount, UPPER(country) AS country FROM orders_csv
""")
spark.sql("INSERT INTO shop.orders SELECT id, CAST(total AS DOUBLE), land FROM more_csv WHERE state = 'done'")
spark.sql("ALTER TABLE shop.orders RENAME TO shop.all_orders")
spark.sql("""
    CREATE TABLE shop.totals USING parquet AS
    SELECT country, SUM(amount) AS total FROM shop.all_orders GROUP BY country
""")
spark.sql("DROP TABLE shop.all_orders")
spark.sql("ALTER TABLE shop.totals RENAME TO shop.country_totals")
spark.stop()
