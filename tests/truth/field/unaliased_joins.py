"""Joins whose keys and results are expressions without an alias: inner, self, USING, full, semi, cross."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
people = spark.read.csv("people.csv", header=True)
cities = spark.read.csv("cities.csv", header=True)
people.createOrReplaceTempView("people")
cities.createOrReplaceTempView("cities")
for name, query in {
    "labels": """
        SELECT concat(p.name, ' (', c.country, ')'), CAST(c.tax AS DOUBLE) * 2
        FROM people p JOIN cities c ON lower(p.city) = lower(c.city)
    """,
    "bosses": """
        SELECT p.name, coalesce(b.name, '-') FROM people p LEFT JOIN people b ON CAST(p.boss AS INT) = CAST(b.id AS INT)
    """,
    "per_city": """
        SELECT city, count(DISTINCT CAST(id AS INT)), max(CAST(tax AS DOUBLE)) FROM people JOIN cities USING (city)
        GROUP BY city
    """,
    "everything": "SELECT city, length(name), length(country) FROM people FULL OUTER JOIN cities USING (city)",
    "taxed": """
        SELECT upper(name) FROM people p LEFT SEMI JOIN cities c ON p.city = c.city AND CAST(c.tax AS INT) > 5
    """,
    "pairs": """
        SELECT count(*), max(to_date(born)) FROM people p
        CROSS JOIN cities c WHERE length(p.name) < CAST(c.tax AS INT)
    """,
}.items():
    spark.sql(query).write.parquet(name)
people.join(cities, f.upper(people.city) == f.upper(cities.city), "left").groupBy(f.to_date("born")).agg(
    f.max(f.col("tax").cast("int"))
).write.parquet("born")
spark.stop()
