"""Makes the Delta tables users, events and sessions."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name, columns, rows in (
    ("users", "id, name, email", "(1, 'Ann', 'a@x'), (2, 'Bob', 'b@x'), (3, 'Cid', 'c@x')"),
    ("events", "user_id, kind", "(1, 'open'), (2, 'open'), (2, 'close'), (3, 'open')"),
    ("sessions", "id, user_id, ip, agent", "('p', 1, '10.0.0.1', 'x'), ('q', 2, '10.0.0.2', 'y')"),
):
    made = spark.sql(f"SELECT * FROM VALUES {rows} AS t({columns})").coalesce(1)
    made.write.format("delta").save(f"{sys.argv[1]}/{name}")
spark.stop()
