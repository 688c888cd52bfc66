"""Who bought on one day in the store and by catalog, but not on the web: INTERSECT and EXCEPT."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("store_sales", "catalog_sales", "web_sales", "customer", "date_dim"):
    spark.read.parquet(f"{name}.parquet").createOrReplaceTempView(name)


def buyers(table: str, short: str) -> str:
    """Who bought by one channel, and when."""
    return f"""
        SELECT DISTINCT c_last_name, c_first_name, d_date FROM {table}, date_dim, customer
        WHERE {short}_sold_date_sk = d_date_sk AND {short}_customer_sk = c_customer_sk AND d_month_seq BETWEEN 5 AND 16
    """


both = f"({buyers('store_sales', 'ss')}) INTERSECT ({buyers('catalog_sales', 'cs')})"
spark.sql(f"({both}) EXCEPT ({buyers('web_sales', 'ws')})").createOrReplaceTempView("loyal")
spark.table("loyal").write.parquet("loyal")
spark.sql("SELECT d_date, COUNT(*) AS customers FROM loyal GROUP BY d_date HAVING COUNT(*) > 0").write.json("per_day")
spark.stop()
