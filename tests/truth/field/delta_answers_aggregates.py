"""Numbers of Delta tables for a report: counts, least and greatest values, alone, in joins and in subqueries."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
sales, other, third, days, fourth = (
    f"delta.`{sys.argv[1]}/{name}`" for name in ("sales", "other", "third", "days", "fourth")
)
spark.read.csv("customers.csv", header=True, inferSchema=True).createOrReplaceTempView("customers")
for name, query in {
    "n": f"SELECT count(*) AS n FROM {sales}",
    "ends": f"SELECT min(id) AS lo, max(id) AS hi, count(*) AS n FROM {sales}",
    "unnamed": f"SELECT max(v), count(1), min(CAST(id AS STRING)) FROM {sales}",
    "kinds": f"SELECT kind, count(*) AS n, max(v) AS most FROM {other} GROUP BY kind",
    "of_day": f"SELECT max(id) AS last FROM {days} WHERE day = '2024-01-01'",
    "day_counts": f"SELECT day, count(*) AS n FROM {days} GROUP BY day",
    "below": f"SELECT name FROM customers WHERE id <= (SELECT max(id) FROM {fourth})",
    "both": f"""
        SELECT a.most, b.n FROM (SELECT max(v) AS most FROM {other}) a
        CROSS JOIN (SELECT count(*) AS n FROM {sales}) b
    """,
}.items():
    spark.sql(query).write.parquet(name)
newest = spark.read.format("delta").load(f"{sys.argv[1]}/other").agg(f.max("id").alias("newest"))
newest.crossJoin(spark.table("customers").select("name")).write.parquet("joined")
print(spark.read.format("delta").load(f"{sys.argv[1]}/third").count(), "rows")
spark.stop()
