"""Makes Delta tables by path: customers, accounts, limits, events, sales (by day), history, compact (in versions)."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for name, columns, rows in (
    ("customers", "id, name, city, visits", "(1, 'Ann', 'Oslo', 3), (2, 'Bob', 'Moss', 4), (3, 'Cid', 'Oslo', 5)"),
    ("accounts", "id, name, balance, status", "(1, 'Ann', 10D, 'new'), (2, 'Bob', -5D, 'new'), (3, 'Cid', 30D, 'new')"),
    ("limits", "id, cap", "(1, 10), (2, 20)"),
    ("events", "id, kind, value", "(1, 'x', 10), (2, 'y', 20), (3, 'x', 30)"),
):
    spark.sql(f"SELECT * FROM VALUES {rows} AS t({columns})").coalesce(1).write.format("delta").save(name)
sales = spark.sql("SELECT * FROM VALUES ('2024-01-01', 1, 10), ('2024-01-02', 1, 20) AS t(day, shop, amount)")
sales.write.format("delta").partitionBy("day").save("sales")
for name in ("history", "compact"):
    for day in range(3):
        row = spark.sql(f"SELECT 'day {day}' AS day, {day} * 10 AS amount").coalesce(1)
        row.write.format("delta").mode("append").save(name)
spark.stop()
