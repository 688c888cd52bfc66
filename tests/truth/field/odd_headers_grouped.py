"""Odd headers as keys and arguments of GROUP BY, ROLLUP, CUBE, GROUPING SETS, DISTINCT, FILTER and HAVING."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
book = spark.read.parquet("book.parquet")
book.createOrReplaceTempView("book")
for name, query in {
    "keys": """
        SELECT `Amount, EUR`, `cost AS planned`, count(*) AS n, sum(`No #12, old`) AS `No #12, old`
        FROM book GROUP BY `Amount, EUR`, `cost AS planned`
    """,
    "rollup": "SELECT `THEN (`, `#7`, max(`a.b`) AS `(1) Scan` FROM book GROUP BY ROLLUP(`THEN (`, `#7`)",
    "cube": "SELECT `x#12L`, `(1) Scan` AS `AS y`, min(`h[0]`) FROM book GROUP BY CUBE(`x#12L`, `(1) Scan`)",
    "sets": """
        SELECT `a.b`, `Net\nprice`, avg(`total `) AS `total ` FROM book
        GROUP BY GROUPING SETS ((`a.b`), (`Net\nprice`, `a.b`), ())
    """,
    "distinct": "SELECT DISTINCT `AS y`, `null`, `select` AS `from` FROM book",
    "having": """
        SELECT `it's`, max(`l{m}`), count(DISTINCT `q``t`) FROM book GROUP BY `it's` HAVING sum(`count(1)`) > 0
    """,
    "some": "SELECT sum(id) FILTER (WHERE `CASE WHEN` > 0) AS `CASE WHEN`, max(`Grün & Weiß`) FROM book",
    "nested": """
        SELECT max(`n, m`) AS `max(n` FROM (SELECT `#7`, sum(`THEN (`) AS `n, m` FROM book GROUP BY `#7`)
    """,
}.items():
    spark.sql(query).write.parquet(name)
book.dropDuplicates(["Rate (1) [%]"]).select("Rate (1) [%]", "h[0]").write.parquet("one_each")
book.groupBy("No #12, old").max("x#12L", "Amount, EUR").write.parquet("greatest")
spark.stop()
