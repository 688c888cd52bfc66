"""Columns that are called as expressions, aliases and ids of the same query are, and swapped names."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.parquet("table.parquet").createOrReplaceTempView("t")
for name, query in {
    "sum_beside_sum": "SELECT `sum(v)`, sum(v) AS total FROM t GROUP BY `sum(v)`",
    "sum_of_sum": "SELECT sum(`sum(v)`), sum(v) FROM t",
    "count_beside_count": "SELECT count(*), `count(1)` AS n FROM t GROUP BY `count(1)`",
    "swapped": "SELECT v AS a, a AS v FROM t",
    "alias_as_name": "SELECT a AS `b AS a`, `b AS a` AS a FROM t",
    "ids": "SELECT `a#1`, `v#2, a#1`, a AS `a#2` FROM t WHERE `v#2, a#1` > 0",
    "ids_summed": "SELECT `a#1`, max(`v#2, a#1`) AS v, min(a) AS `v#2` FROM t GROUP BY `a#1`",
    "words": """
        SELECT `select` AS `from`, `from` AS `where`, `where` AS `select`
        FROM t ORDER BY `order`, `from` LIMIT 3
    """,
    "cast": "SELECT `CAST(a AS INT)`, CAST(a AS INT), CAST(`CAST(a AS INT)` AS STRING) AS s FROM t",
    "twice": "SELECT l.v, r.v AS `v AS v`, l.`sum(v)` + r.`count(1)` AS `sum(v)` FROM t l JOIN t r ON l.a = r.`a#1`",
    "like_case": "SELECT `CASE WHEN a THEN v END`, CASE WHEN a > 1 THEN (v) END FROM t",
    "star": "SELECT *, `(v * 2)` + (v * 2) AS `(v * 2) AS (v * 2)` FROM t",
    "window": "SELECT rank() OVER (ORDER BY `sum(v)`) AS `rank() OVER (ORDER BY a)`, `a#1` AS a FROM t",
}.items():
    spark.sql(query).write.parquet(name)
spark.stop()
