"""Customers who return more than is usual in their store: a CTE used twice, once in a correlated subquery."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("store_returns", "date_dim", "store", "customer"):
    spark.read.parquet(f"{name}.parquet").createOrReplaceTempView(name)
spark.sql("""
    WITH customer_total_return AS (
        SELECT sr_customer_sk AS ctr_customer_sk, sr_store_sk AS ctr_store_sk, SUM(sr_return_amt) AS ctr_total_return
        FROM store_returns, date_dim
        WHERE sr_returned_date_sk = d_date_sk AND d_year = 2024
        GROUP BY sr_customer_sk, sr_store_sk
    )
    SELECT c_customer_id, ctr1.ctr_total_return AS returned
    FROM customer_total_return ctr1, store, customer
    WHERE ctr1.ctr_total_return > (
            SELECT AVG(ctr_total_return) * 1.2 FROM customer_total_return ctr2
            WHERE ctr1.ctr_store_sk = ctr2.ctr_store_sk
        )
        AND s_store_sk = ctr1.ctr_store_sk AND s_state = 'TN' AND ctr1.ctr_customer_sk = c_customer_sk
    ORDER BY c_customer_id
    LIMIT 100
""").write.csv("returners", header=True)
spark.stop()
