"""Variables of the session hold a limit and the newest closed day, which a query of the closings sets."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.read.csv("closings.csv", header=True, inferSchema=True).createOrReplaceTempView("closings")
spark.sql("DECLARE OR REPLACE VARIABLE low INT DEFAULT 10")
spark.sql("DECLARE OR REPLACE VARIABLE closed DATE")
spark.sql("SET VAR closed = (SELECT MAX(CAST(day AS DATE)) FROM closings)")
spark.sql("""
    SELECT customer, SUM(amount) AS total, MAX(closed) AS as_of FROM orders
    WHERE CAST(day AS DATE) <= closed AND amount >= low
    GROUP BY customer
""").write.mode("overwrite").parquet("closed_totals")
spark.sql("SET VAR (low, closed) = (SELECT 0, DATE '2024-12-31')")
spark.sql("""
    SELECT order_id, IF(amount > low, label, 'free') AS label FROM orders WHERE CAST(day AS DATE) <= session.closed
""").write.mode("overwrite").parquet("labels")
spark.sql("DROP TEMPORARY VARIABLE low")
spark.stop()
