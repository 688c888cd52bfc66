"""Makes Iceberg tables: customers, accounts, blocked, limits, sales (by day of a time and a bucket)."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for name, columns, rows in (
    ("customers", "id, name, city, visits", "(1, 'Ann', 'Oslo', 3), (2, 'Bob', 'Moss', 0), (3, 'Cid', 'Oslo', 5)"),
    ("accounts", "id, name, balance, status", "(1, 'Ann', 10D, 'new'), (2, 'Bob', -5D, 'new'), (3, 'Cid', 30D, 'new')"),
    ("blocked", "account, reason", "(3, 'fraud'), (1, 'none')"),
    ("limits", "id, cap", "(1, 10), (2, 20)"),
):
    spark.sql(f"CREATE TABLE ice.db.{name} USING iceberg AS SELECT * FROM VALUES {rows} AS t({columns})")
spark.sql("""
    CREATE TABLE ice.db.sales (at TIMESTAMP, shop INT, amount INT) USING iceberg
    PARTITIONED BY (days(at), bucket(4, shop))
""")
spark.sql("""
    INSERT INTO ice.db.sales VALUES (TIMESTAMP '2024-01-01 10:00:00', 1, 10), (TIMESTAMP '2024-01-02 10:00:00', 1, 20)
""")
spark.stop()
