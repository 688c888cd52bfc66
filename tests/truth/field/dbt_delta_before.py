"""Makes Delta tables in a metastore: snapshots.customers with its history, analytics.fct_orders with two orders."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
for name in ("raw", "snapshots", "analytics"):
    spark.sql(f"CREATE DATABASE {name}")
spark.sql("""
    CREATE TABLE raw.customers USING parquet AS
    SELECT * FROM VALUES (1, 'Oslo', TIMESTAMP '2024-01-05 00:00:00'), (2, 'Moss', TIMESTAMP '2024-01-01 00:00:00'),
        (3, 'Voss', TIMESTAMP '2024-01-05 00:00:00') AS t(id, city, updated_at)
""")
spark.sql("""
    CREATE TABLE snapshots.customers USING delta AS
    SELECT id, city, updated_at, md5(concat(id, '|', updated_at)) AS dbt_scd_id, updated_at AS dbt_valid_from,
           CAST(NULL AS TIMESTAMP) AS dbt_valid_to
    FROM VALUES (1, 'Bergen', TIMESTAMP '2024-01-01 00:00:00'), (2, 'Moss', TIMESTAMP '2024-01-01 00:00:00')
        AS t(id, city, updated_at)
""")
spark.sql("""
    CREATE TABLE analytics.fct_orders USING delta AS
    SELECT * FROM VALUES ('a', 1, 'open', TIMESTAMP '2024-01-01 00:00:00'),
        ('b', 2, 'open', TIMESTAMP '2024-01-02 00:00:00') AS t(order_key, order_id, status, updated_at)
""")
spark.stop()
