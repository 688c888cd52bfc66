"""Makes the Iceberg tables daily, by day, and regions."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.daily (day DATE, total BIGINT, orders BIGINT) USING iceberg PARTITIONED BY (day)")
spark.sql("INSERT INTO ice.db.daily VALUES (DATE '2024-01-01', 1, 1), (DATE '2024-01-02', 2, 1)")
spark.sql("CREATE TABLE ice.db.regions USING iceberg AS SELECT 'x' AS country, 'old' AS region")
spark.stop()
