"""Temporary, global temporary and permanent views, one of them replaced, and nested CTEs of which one is used twice."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.read.csv("customers.csv", header=True, inferSchema=True).createGlobalTempView("customers")
spark.sql("CREATE TABLE base USING parquet AS SELECT order_id, customer_id, amount, note FROM orders")
spark.sql("CREATE VIEW big AS SELECT order_id, customer_id, note AS amount FROM base")
spark.sql("CREATE OR REPLACE VIEW big AS SELECT order_id, customer_id, amount * 2 AS amount FROM base WHERE amount > 5")
spark.sql("""
    CREATE TABLE report USING parquet AS
    WITH a AS (SELECT * FROM big),
         sums AS (WITH c AS (SELECT customer_id, SUM(amount) AS total FROM a GROUP BY customer_id) SELECT * FROM c)
    SELECT x.name, sums.total, other.total AS same
    FROM sums JOIN global_temp.customers x ON x.id = sums.customer_id JOIN sums other ON other.customer_id = x.id
""")
spark.sql("DROP VIEW big")
spark.stop()
