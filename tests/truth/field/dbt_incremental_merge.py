"""An incremental model of dbt with a surrogate key: what is newer than the target is deduplicated and merged."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, shop STRING, status STRING, changed TIMESTAMP")
orders.createOrReplaceTempView("src_orders")
spark.sql("""
    CREATE OR REPLACE TEMPORARY VIEW fct_orders__dbt_tmp AS
    WITH numbered AS (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY shop, id ORDER BY changed DESC) AS dedupe_rank
        FROM src_orders
        WHERE changed > (SELECT MAX(updated_at) FROM analytics.fct_orders)
    )
    SELECT md5(concat_ws('-', coalesce(shop, '_null_'), coalesce(CAST(id AS STRING), '_null_'))) AS order_key,
           id AS order_id, lower(status) AS status, changed AS updated_at
    FROM numbered WHERE dedupe_rank = 1
""")
spark.sql("""
    MERGE INTO analytics.fct_orders AS DBT_INTERNAL_DEST USING fct_orders__dbt_tmp AS DBT_INTERNAL_SOURCE
    ON DBT_INTERNAL_SOURCE.order_key = DBT_INTERNAL_DEST.order_key
    WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED THEN INSERT *
""")
spark.stop()
