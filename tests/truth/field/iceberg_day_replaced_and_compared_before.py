"""Makes the Iceberg tables stock, in two snapshots, and prices, in one with three regions."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.stock (sku STRING, qty INT, day STRING) USING iceberg PARTITIONED BY (day)")
spark.sql("INSERT INTO ice.db.stock VALUES ('a', 10, '2024-01-01'), ('b', 20, '2024-01-01')")
spark.sql("INSERT INTO ice.db.stock VALUES ('a', 0, '2024-01-02')")
spark.sql("CREATE TABLE ice.db.prices (sku STRING, region STRING, cents INT) USING iceberg PARTITIONED BY (region)")
spark.sql("INSERT INTO ice.db.prices VALUES ('x', 'north', 1), ('y', 'south', 2), ('z', 'west', 3)")
spark.stop()
