"""Scalar subqueries, EXISTS, IN, semi and anti joins, a broadcast join, and a table joined with itself."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("orders", "vips", "refunds", "limits", "rates", "staff"):
    spark.read.csv(f"{name}.csv", header=True, inferSchema=True).createOrReplaceTempView(name)
spark.sql("""
    SELECT o.order_id FROM orders o
    WHERE o.customer IN (SELECT name FROM vips) AND NOT EXISTS (SELECT 1 FROM refunds r WHERE r.order_id = o.order_id)
""").write.parquet("vip_orders")
spark.sql("SELECT order_id FROM orders WHERE amount > (SELECT MAX(low) FROM limits)").write.parquet("big_orders")
spark.sql("SELECT order_id, amount * (SELECT MAX(rate) FROM rates) AS sek FROM orders").write.parquet("foreign_orders")
spark.sql("SELECT o.* FROM orders o LEFT ANTI JOIN vips v ON v.name = o.customer").write.parquet("others")
spark.sql("""
    SELECT /*+ BROADCAST(b) */ s.name, b.name AS boss FROM staff s LEFT JOIN staff b ON s.boss_id = b.id
""").write.parquet("bosses")
spark.stop()
