"""Makes the Iceberg table prices."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.prices (sku STRING, price DOUBLE, since DATE) USING iceberg")
spark.sql("INSERT INTO ice.db.prices VALUES ('a', 1D, DATE '2024-01-01')")
spark.stop()
