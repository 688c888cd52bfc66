"""Columns with odd headers become rows and back: explode, stack, UNPIVOT and PIVOT with odd values."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
table = spark.read.parquet("table.parquet")
table.createOrReplaceTempView("t")
for name, query in {
    "tags": "SELECT id, explode(`Tags, all`) AS `tag (1), one` FROM t",
    "lateral": "SELECT `No #12`, `t AS u` FROM t LATERAL VIEW explode(`Tags, all`) g AS `t AS u`",
    "parts": r"SELECT id, `p#1` FROM t LATERAL VIEW OUTER posexplode(split(`THEN (`, '\\(')) g AS `n#0`, `p#1`",
    "quarters": """
        SELECT id, `when, q`, `EUR (1)` FROM t
        UNPIVOT INCLUDE NULLS (`EUR (1)` FOR `when, q` IN (`Q1 (plan)`, `Q2, AS is`))
    """,
    "kinds": """
        SELECT * FROM (SELECT `No #12`, `THEN (`, `Q1 (plan)` FROM t)
        PIVOT (sum(`Q1 (plan)`) FOR `THEN (` IN ('a, b' AS `a, b`, '(x' AS `(x AS y#1`))
    """,
    "fields": "SELECT `info (all)`.`zip, code` AS `zip#1`, `info (all)`.city FROM t",
}.items():
    spark.sql(query).write.parquet(name)
table.groupBy("No #12").pivot("THEN (", ["a, b", "(x"]).agg(f.sum("Q2, AS is")).write.parquet("pivoted")
table.unpivot("id", ["Q1 (plan)", "Q2, AS is"], "which (q)", "EUR, sum").write.parquet("unpivoted")
table.select("id", f.posexplode("Tags, all").alias("pos#1", "tag, one")).write.parquet("numbered")
spark.stop()
