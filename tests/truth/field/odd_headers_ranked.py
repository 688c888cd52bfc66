"""Odd headers that partition and order windows, that rows are sorted by, and that sorts are limited after."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
book = spark.read.parquet("book.parquet")
book.createOrReplaceTempView("book")
for name, query in {
    "numbered": """
        SELECT id, row_number() OVER (PARTITION BY `Amount, EUR`, `#7` ORDER BY `THEN (` DESC) AS `No #12, old`
        FROM book
    """,
    "lagged": """
        SELECT id, lag(`cost AS planned`, 1) OVER (PARTITION BY `it's` ORDER BY `Net\nprice`) AS `a, b AS c#4` FROM book
    """,
    "latest": """
        SELECT `x#12L`, `AS y` FROM (
            SELECT *, rank() OVER (PARTITION BY `a.b` ORDER BY `Rate (1) [%]` DESC, `q``t`) AS `r (1)` FROM book
        ) WHERE `r (1)` = 1
    """,
    "shares": """
        SELECT `CASE WHEN`, sum(`total `) / sum(sum(`total `)) OVER (PARTITION BY `CASE WHEN`) AS `share, %`
        FROM book GROUP BY `CASE WHEN`
    """,
    "unnamed": "SELECT sum(`h[0]`) OVER (PARTITION BY `l{m}`) FROM book",
    "top": "SELECT `select`, `null` FROM book ORDER BY `(1) Scan` DESC, `count(1)` LIMIT 1",
}.items():
    spark.sql(query).write.parquet(name)
window = Window.partitionBy("No #12, old").orderBy(f.col("Grün & Weiß").desc())
book.select("id", f.first("Amount, EUR").over(window).alias("first, of (all)")).write.parquet("first")
book.select("THEN (", 'a"b').orderBy("THEN (").limit(2).write.parquet("sorted")
spark.stop()
