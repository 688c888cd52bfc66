"""Makes tables of Hive: raw.customers, raw.orders, raw.payments, and analytics.daily_revenue with two days."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE raw")
spark.sql("CREATE DATABASE analytics")
for name, columns, rows in (
    (
        "customers",
        "id, first_name, last_name, country",
        "(1, 'Ann', 'Aas', 'NO'), (2, 'Bob', 'Berg', 'SE'), (3, 'Cid', 'Dahl', 'NO')",
    ),
    (
        "orders",
        "id, user_id, order_date, status",
        "(1, 1, DATE '2024-01-01', 'done'), (2, 2, DATE '2024-01-02', 'returned'), (3, 1, DATE '2024-01-03', 'done')",
    ),
    (
        "payments",
        "id, order_id, method, amount",
        "(1, 1, 'card', 1000), (2, 2, 'coupon', 500), (3, 3, 'card', 200), (4, 3, 'transfer', 300)",
    ),
):
    spark.sql(f"CREATE TABLE raw.{name} USING parquet AS SELECT * FROM VALUES {rows} AS t({columns})")
spark.sql("""
    CREATE TABLE analytics.daily_revenue (country STRING, orders BIGINT, revenue DOUBLE, order_date DATE)
    USING parquet PARTITIONED BY (order_date)
""")
spark.sql("""
    INSERT INTO analytics.daily_revenue VALUES
        ('NO', 1, 10D, DATE '2024-01-01'), ('SE', 9, 99D, DATE '2024-01-02')
""")
spark.stop()
