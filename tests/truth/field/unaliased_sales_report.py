"""A report of sales in SQL, whose sums, counts and dates have no alias."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True).createOrReplaceTempView("orders")
for name, query in {
    "by_customer": "SELECT customer, sum(CAST(amount AS INT)) FROM orders GROUP BY customer",
    "active_days": "SELECT customer, count(DISTINCT CAST(day AS DATE)) FROM orders GROUP BY customer",
    "per_day": "SELECT to_date(day), count(*), max(CAST(amount AS DOUBLE)) FROM orders GROUP BY to_date(day)",
    "per_month": """
        SELECT date_trunc('MONTH', CAST(day AS TIMESTAMP)), sum(CAST(amount AS DECIMAL(10,2)) * CAST(qty AS INT))
        FROM orders GROUP BY date_trunc('MONTH', CAST(day AS TIMESTAMP))
    """,
    "revenue": """
        SELECT sum(CASE WHEN state = 'paid' THEN CAST(amount AS INT) ELSE 0 END), avg(CAST(qty AS INT)) FROM orders
    """,
    "large": """
        SELECT customer, max(CAST(amount AS INT)), min(to_date(day)) FROM orders WHERE CAST(qty AS INT) > 1
        GROUP BY customer HAVING sum(CAST(amount AS INT)) > 15 AND count(DISTINCT CAST(day AS DATE)) >= 1
    """,
    "paid": "SELECT count(*) FILTER (WHERE state = 'paid'), count(DISTINCT customer) FROM orders",
}.items():
    spark.sql(query).write.parquet(name)
spark.stop()
