"""Makes the Iceberg tables stock, and visits and sales in partitions by day."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.stock (sku STRING, qty INT) USING iceberg")
spark.sql("INSERT INTO ice.db.stock VALUES ('a', 10), ('b', 20)")
spark.sql("CREATE TABLE ice.db.visits (page STRING, hits INT, day INT) USING iceberg PARTITIONED BY (day)")
spark.sql("INSERT INTO ice.db.visits VALUES ('a', 1, 1), ('b', 2, 2)")
spark.sql("CREATE TABLE ice.db.sales (sku STRING, qty INT, day INT) USING iceberg PARTITIONED BY (day)")
spark.sql("INSERT INTO ice.db.sales VALUES ('a', 1, 1), ('b', 2, 2), ('c', 3, 4), ('d', 4, 5)")
spark.stop()
