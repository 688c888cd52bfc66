"""Builds a staging table with a CASE, reads it for two reports, and drops it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.sql("CREATE TABLE staging (order_id INT, size STRING, net DOUBLE) USING parquet")
spark.sql("""
    INSERT INTO staging
    SELECT order_id, CASE WHEN amount > 15 THEN 'big' ELSE label END, amount - discount
    FROM orders WHERE status = 'paid'
""")
spark.sql("SELECT size, SUM(net) AS net FROM staging GROUP BY size").write.parquet("by_size")
spark.table("staging").select("order_id", "size").write.parquet("sizes")
spark.sql("DROP TABLE staging")
spark.stop()
