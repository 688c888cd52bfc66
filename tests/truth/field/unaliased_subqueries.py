"""Scalar subqueries, IN, EXISTS, HAVING and derived tables, all of them without an alias."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("items", "rates"):
    spark.read.csv(f"{name}.csv", header=True).createOrReplaceTempView(name)
for name, query in {
    "highest": "SELECT sku, (SELECT max(CAST(rate AS DOUBLE)) FROM rates) FROM items",
    "taxed": """
        SELECT sku, CAST(price AS DOUBLE) * (SELECT avg(CAST(rate AS DOUBLE)) FROM rates WHERE kind = 'vat') FROM items
    """,
    "since": """
        SELECT count(*), sum(CAST(price AS INT)) FROM items
        WHERE to_date(day) >= (SELECT min(to_date(valid_from)) FROM rates)
    """,
    "kinds": """
        SELECT kind, count(DISTINCT sku) FROM items WHERE kind IN (SELECT lower(kind) FROM rates)
        GROUP BY kind HAVING sum(CAST(price AS INT)) > (SELECT min(CAST(rate AS INT)) FROM rates)
    """,
    "most": """
        SELECT max(`sum(CAST(price AS INT))`)
        FROM (SELECT kind, sum(CAST(price AS INT)) FROM items GROUP BY kind)
    """,
    "known": """
        SELECT upper(sku), to_date(day) FROM items i
        WHERE EXISTS (SELECT 1 FROM rates r WHERE r.kind = i.kind AND CAST(r.rate AS INT) > 1)
    """,
    "first_days": """
        WITH days AS (SELECT sku, min(CAST(day AS DATE)) FROM items GROUP BY sku)
        SELECT date_format(`min(CAST(day AS DATE))`, 'yyyy'), count(sku) FROM days
        GROUP BY date_format(`min(CAST(day AS DATE))`, 'yyyy')
    """,
}.items():
    spark.sql(query).write.parquet(name)
spark.stop()
