"""Compares an Iceberg table with its tag of last week, sums that tag per shop, and exports what came since."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    SELECT coalesce(n.sku, o.sku) AS sku, n.qty - coalesce(o.qty, 0) AS growth
    FROM ice.db.stock n FULL JOIN (SELECT * FROM ice.db.stock VERSION AS OF 'week1') o ON n.sku = o.sku
    WHERE NOT (n.shop <=> o.shop)
""").write.parquet("growth")

last_week = spark.read.format("iceberg").option("versionAsOf", "week1").load("ice.db.stock")
last_week.groupBy("shop").agg(f.sum("qty").alias("qty")).write.parquet("last_week")

refs = spark.sql("SELECT snapshot_id FROM ice.db.stock.refs WHERE name = 'week1'").collect()
since = spark.read.format("iceberg").option("start-snapshot-id", refs[0].snapshot_id).load("ice.db.stock")
since.select("sku", "qty").write.mode("append").json("new_items")
print("snapshots:", spark.table("ice.db.stock.snapshots").count())
spark.stop()
