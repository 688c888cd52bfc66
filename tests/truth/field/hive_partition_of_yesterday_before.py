"""Makes Hive's table shop.stock, with a partition of yesterday and a first try of today's."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE shop")
spark.sql("CREATE TABLE shop.stock (sku STRING, qty INT) PARTITIONED BY (day STRING) STORED AS PARQUET")
spark.sql("INSERT INTO shop.stock PARTITION (day = '2024-01-01') VALUES ('a', 10), ('b', 20)")
spark.sql("INSERT INTO shop.stock PARTITION (day = '2024-01-02') VALUES ('a', 0)")
spark.stop()
