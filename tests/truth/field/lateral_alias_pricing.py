"""Columns that build on columns of the same SELECT, a CASE over them, named windows, and windows over aggregates."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.sql("""
    SELECT order_id, quantity * price AS gross, gross * (1 - discount) AS net,
           CASE WHEN net > 100 THEN 'large' WHEN gross > 50 THEN 'medium' ELSE label END AS size,
           net * vat AS tax, ROUND(net + tax, 2) AS total
    FROM orders
""").write.parquet("priced")
spark.sql("""
    SELECT region, customer, total, place, total / region_total AS share FROM (
        SELECT region, customer, SUM(quantity * price) AS total, RANK() OVER best AS place,
               SUM(SUM(quantity * price)) OVER (PARTITION BY region) AS region_total
        FROM orders GROUP BY region, customer
        WINDOW best AS (PARTITION BY region ORDER BY SUM(quantity * price) DESC)
    )
""").write.parquet("places")
spark.sql("""
    SELECT order_id, customer, running, CASE WHEN running > 100 THEN previous_label ELSE 'start' END AS mood FROM (
        SELECT order_id, customer, SUM(quantity) OVER so_far AS running, LAG(label) OVER by_day AS previous_label,
               DENSE_RANK() OVER by_day AS number
        FROM orders
        WINDOW by_day AS (PARTITION BY customer ORDER BY day),
               so_far AS (PARTITION BY customer ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ) WHERE number <= 10
""").write.parquet("moods")
spark.stop()
