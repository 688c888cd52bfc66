"""Makes orders twice: of Delta in versions 0 to 2, and of Iceberg; and late, of Iceberg, in two snapshots."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE orders (id INT, amount INT, shop STRING) USING delta")
spark.sql("INSERT INTO orders VALUES (1, 10, 'north')")
spark.sql("INSERT INTO orders VALUES (2, 20, 'south')")
spark.sql("CREATE TABLE ice.default.orders (id INT, amount INT, shop STRING) USING iceberg")
spark.sql("INSERT INTO ice.default.orders VALUES (1, 11, 'north')")
spark.sql("CREATE TABLE ice.default.late (id INT, cents INT) USING iceberg")
spark.sql("INSERT INTO ice.default.late VALUES (1, 5)")
spark.sql("INSERT INTO ice.default.late VALUES (7, -5)")
spark.stop()
