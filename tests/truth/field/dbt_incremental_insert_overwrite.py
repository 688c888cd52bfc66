"""An incremental model of dbt: days from the newest one of the target on replace the partitions of those days."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "DYNAMIC")
spark.sql("""
    CREATE OR REPLACE TEMPORARY VIEW daily_revenue__dbt_tmp AS
    WITH paid AS (
        SELECT order_id, SUM(amount) AS cents FROM raw.payments GROUP BY order_id
    ),
    joined AS (
        SELECT c.country, o.id AS order_id, paid.cents, o.order_date
        FROM raw.orders o
        JOIN raw.customers c ON c.id = o.user_id
        JOIN paid ON paid.order_id = o.id
        WHERE o.order_date >= (SELECT MAX(order_date) FROM analytics.daily_revenue)
    )
    SELECT country, COUNT(order_id) AS orders, SUM(cents) / 100 AS revenue, order_date
    FROM joined GROUP BY country, order_date
""")
spark.sql("""
    INSERT OVERWRITE TABLE analytics.daily_revenue PARTITION (order_date)
    SELECT country, orders, revenue, order_date FROM daily_revenue__dbt_tmp
""")
spark.stop()
