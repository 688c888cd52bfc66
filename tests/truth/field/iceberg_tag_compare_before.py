"""Makes the Iceberg table stock, with the tag week1 and two snapshots after it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.stock (sku STRING, shop INT, qty INT) USING iceberg")
spark.sql("INSERT INTO ice.db.stock VALUES ('a', 1, 10), ('b', 1, 20)")
spark.sql("ALTER TABLE ice.db.stock CREATE TAG week1")
spark.sql("INSERT INTO ice.db.stock VALUES ('c', 2, 30)")
spark.sql("INSERT INTO ice.db.stock VALUES ('d', 2, 40)")
spark.stop()
