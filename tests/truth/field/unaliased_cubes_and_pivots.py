"""CUBE, ROLLUP, GROUPING SETS and PIVOT over expressions, without an alias."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
sales = spark.read.csv("sales.csv", header=True)
sales.createOrReplaceTempView("sales")
for name, query in {
    "cube": "SELECT region, count(*), max(day) FROM sales GROUP BY CUBE(CAST(amount AS INT), region)",
    "cube_keys": """
        SELECT CAST(amount AS INT) + 0, region, count(*)
        FROM sales GROUP BY CUBE(CAST(amount AS INT) + 0, region)
    """,
    "sets": """
        SELECT to_date(day), product, sum(CAST(amount AS INT)) FROM sales
        GROUP BY GROUPING SETS ((to_date(day), product), (to_date(day)), ())
    """,
    "rollup": "SELECT upper(region), count(DISTINCT CAST(day AS DATE)) FROM sales GROUP BY ROLLUP(upper(region))",
    "methods": """
        SELECT * FROM (SELECT region, method, CAST(amount AS INT) FROM sales)
        PIVOT (sum(amount) FOR method IN ('card', 'cash'))
    """,
    "methods_twice": """
        SELECT * FROM (SELECT region, method, amount, cost FROM sales)
        PIVOT (sum(CAST(amount AS INT)), max(CAST(cost AS INT)) FOR method IN ('card', 'cash'))
    """,
}.items():
    spark.sql(query).write.parquet(name)
sales.groupBy(f.to_date("day")).pivot("method", ["card", "cash"]).agg(f.sum(f.col("amount").cast("int"))).write.parquet(
    "per_day"
)
sales.rollup(f.col("amount").cast("int"), f.to_date("day")).agg(f.max(f.col("cost").cast("int"))).write.parquet(
    "levels"
)
spark.stop()
