"""Unions of two branches that have no aliases: of values, of sums, DISTINCT ones, and grouped again."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
north = spark.read.csv("north.csv", header=True)
south = spark.read.csv("south.csv", header=True)
north.createOrReplaceTempView("north")
south.createOrReplaceTempView("south")
both = "SELECT to_date(day), amount * 2 FROM north UNION ALL SELECT to_date(at), CAST(total AS INT) + 1 FROM south"
for name, query in {
    "all_days": both,
    "sums": "SELECT sum(CAST(amount AS INT)) FROM north UNION ALL SELECT sum(CAST(total AS INT)) FROM south",
    "names": "SELECT upper(id) FROM north UNION SELECT upper(no) FROM south",
    "per_day": f"SELECT `to_date(day)`, sum(`(amount * 2)`) FROM ({both}) GROUP BY `to_date(day)`",
    "in_both": "SELECT lower(id) FROM north INTERSECT SELECT lower(no) FROM south",
    "labelled": """
        SELECT 'north (', count(DISTINCT CAST(day AS DATE))
        FROM north UNION ALL SELECT 's, x#1', 0 FROM south
    """,
}.items():
    spark.sql(query).write.parquet(name)
sums = north.groupBy("id").agg(f.sum(f.col("amount").cast("int")))
others = south.groupBy(f.col("no").alias("id")).agg(f.sum(f.col("total").cast("int")).alias(sums.columns[1]))
sums.unionByName(others).write.parquet("by_name")
spark.stop()
