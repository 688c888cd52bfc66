"""Files that are there get a table: its partitions are found, one more is added by its place; a report reads them."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql(f"""
    CREATE TABLE landing (sku STRING, qty BIGINT, day STRING) USING parquet PARTITIONED BY (day)
    LOCATION '{home}/lake/landing'
""")
spark.sql("MSCK REPAIR TABLE landing")
spark.sql(f"ALTER TABLE landing ADD PARTITION (day = '2024-01-09') LOCATION '{home}/lake/landing/late/nine'")
spark.sql(f"CREATE EXTERNAL TABLE prices (sku STRING, cents BIGINT) STORED AS PARQUET LOCATION '{home}/lake/prices'")
spark.sql(f"CREATE TABLE unread USING parquet LOCATION '{home}/lake/unread'")
spark.catalog.createTable("listed", path=f"{home}/lake/listed", source="parquet")
spark.sql("""
    SELECT l.day, sum(l.qty * p.cents) AS cents FROM landing l JOIN prices p ON l.sku = p.sku GROUP BY l.day
""").write.parquet("report")
spark.table("listed").write.parquet("copy")
spark.stop()
