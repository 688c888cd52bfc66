"""Odd headers in scalar subqueries, IN, EXISTS, CTEs with column lists, lateral aliases and views."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("book", "lookup"):
    spark.read.parquet(f"{name}.parquet").createOrReplaceTempView(name)
for name, query in {
    "highest": "SELECT id, (SELECT max(`THEN, ELSE`) FROM lookup) AS `max, of (all)` FROM book",
    "above": """
        SELECT `Amount, EUR` FROM book
        WHERE `cost AS planned` > (SELECT avg(`x#12`) FROM lookup WHERE `kind (1)` = '[')
    """,
    "listed": "SELECT `#7` FROM book WHERE `No #12, old` IN (SELECT `x#12` FROM lookup WHERE `THEN, ELSE` > 0)",
    "known": "SELECT id FROM book b WHERE EXISTS (SELECT 1 FROM lookup l WHERE l.`x#12` = b.`count(1)`)",
    "ctes": """
        WITH one (`a AS b`, `c#1`) AS (SELECT `q``t`, `it's` FROM book), two AS (SELECT `a AS b` AS `x, y` FROM one)
        SELECT o.`c#1`, t.`x, y` FROM one o JOIN two t ON o.`a AS b` = t.`x, y`
    """,
    "lateral": "SELECT `THEN (` + 1 AS `n (1)`, `n (1)` * `AS y` AS `m, AS z#3` FROM book",
    "unnamed": "SELECT `Amount, EUR` * (SELECT min(`x#12`) FROM lookup WHERE `kind (1)` <> '(') FROM book",
}.items():
    spark.sql(query).write.parquet(name)
spark.sql("CREATE VIEW shown (`a, b`, `#1`) AS SELECT id, id + 1 AS next FROM VALUES (0), (1) AS v(id)")
spark.sql("SELECT s.`a, b`, b.`h[0]` AS `#1` FROM shown s JOIN book b ON b.id = s.`#1`").write.parquet("of_view")
spark.stop()
