"""Items ranked by sales within their category, over a cube; and stores which sell more than the mean store."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("store_sales", "item", "store"):
    spark.read.parquet(f"{name}.parquet").createOrReplaceTempView(name)
spark.sql("""
    SELECT * FROM (
        SELECT i_category, i_brand, s_state, sumsales,
               RANK() OVER (PARTITION BY i_category ORDER BY sumsales DESC) AS rk
        FROM (
            SELECT i_category, i_brand, s_state, SUM(COALESCE(ss_sales_price * ss_quantity, 0)) AS sumsales
            FROM store_sales
            JOIN item ON ss_item_sk = i_item_sk
            JOIN store ON ss_store_sk = s_store_sk
            WHERE ss_promo IS NULL
            GROUP BY CUBE(i_category, i_brand, s_state)
        ) dw1
    ) dw2
    WHERE rk <= 2
""").write.parquet("best_items")
spark.sql("""
    SELECT s_state, i_category, SUM(ss_quantity) AS sold, GROUPING_ID() AS level
    FROM store_sales JOIN item ON ss_item_sk = i_item_sk JOIN store ON ss_store_sk = s_store_sk
    GROUP BY GROUPING SETS ((s_state), (s_state, i_category))
    HAVING SUM(ss_quantity) > (SELECT AVG(ss_quantity) FROM store_sales WHERE ss_wholesale_cost > 0)
""").write.orc("states")
spark.stop()
