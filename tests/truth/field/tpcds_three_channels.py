"""Sales of manufacturers in three channels, each joined and summed by itself, united, and rolled up."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("store_sales", "catalog_sales", "web_sales", "item", "date_dim"):
    spark.read.parquet(f"{name}.parquet").createOrReplaceTempView(name)
channels = {"ss": "store_sales", "cs": "catalog_sales", "ws": "web_sales"}
sums = ",\n".join(
    f"""{short} AS (
        SELECT i_manufact_id, SUM({short}_ext_sales_price) AS total_sales
        FROM {table}, item, date_dim
        WHERE {short}_item_sk = i_item_sk AND {short}_sold_date_sk = d_date_sk
          AND i_category = 'Books' AND d_year = 2024
        GROUP BY i_manufact_id
    )"""
    for short, table in channels.items()
)
report = spark.sql(f"""
    WITH {sums}
    SELECT channel, i_manufact_id, SUM(total_sales) AS total_sales
    FROM (
        SELECT 'store' AS channel, i_manufact_id, total_sales FROM ss
        UNION ALL SELECT 'catalog' AS channel, i_manufact_id, total_sales FROM cs
        UNION ALL SELECT 'web' AS channel, i_manufact_id, total_sales FROM ws
    ) x
    GROUP BY ROLLUP(channel, i_manufact_id)
    ORDER BY channel, i_manufact_id
    LIMIT 100
""")
report.write.mode("overwrite").parquet("manufacturers")
spark.stop()
