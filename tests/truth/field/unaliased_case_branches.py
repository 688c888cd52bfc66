"""CASE and if whose branches stand in brackets or call functions, with and without an alias."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.parquet("bookings.parquet").createOrReplaceTempView("bookings")
for name, query in {
    "due": "SELECT id, CASE WHEN flag THEN (a) * v ELSE 0 END AS due FROM bookings",
    "due_unnamed": "SELECT id, CASE WHEN flag THEN (a) * v ELSE 0 END FROM bookings",
    "by_state": """
        SELECT state, sum(CASE WHEN flag THEN (a + 1) * v WHEN raw LIKE '(%' THEN v END),
               count(CASE WHEN (a > 1) THEN 1 END)
        FROM bookings GROUP BY state
    """,
    "either": """
        SELECT if(flag, (a), (v)), CASE state WHEN 'new' THEN (day) ELSE (raw) END FROM bookings
    """,
    "having": """
        SELECT state, max(CAST(v AS INT)) FROM bookings GROUP BY state
        HAVING max(CASE WHEN flag THEN (a) ELSE 0 END) > 0 AND count(*) > 0
    """,
    "nested": """
        SELECT id, CASE WHEN flag THEN (CASE WHEN a > 1 THEN (v) ELSE -(v) END) ELSE (0) END AS net FROM bookings
    """,
    "functions": """
        SELECT id, CASE WHEN flag THEN abs(v) ELSE round(v, 1) END AS size,
               CASE WHEN (flag) AND (a) IN (1, 2) THEN concat('(', day) WHEN NOT (flag) THEN (raw) END AS label
        FROM bookings
    """,
    "then_words": """
        SELECT id, CASE WHEN raw = 'THEN (' THEN day WHEN raw LIKE '% ELSE %' THEN concat(state, ' END') ELSE 'WHEN' END
            AS words
        FROM bookings
    """,
}.items():
    spark.sql(query).write.parquet(name)
spark.stop()
