"""Makes three tables sales: in two databases of an Iceberg catalog, and in Spark's own catalog."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.shop.sales (id INT, amount INT) USING iceberg")
spark.sql("INSERT INTO ice.shop.sales VALUES (1, 10)")
spark.sql("INSERT INTO ice.shop.sales VALUES (2, 20)")
spark.sql("CREATE TABLE ice.archive.sales (id INT, amount INT) USING iceberg")
spark.sql("INSERT INTO ice.archive.sales VALUES (2, 0)")
spark.sql("CREATE TABLE spark_catalog.default.sales (id INT, amount INT) USING parquet")
spark.sql("INSERT INTO spark_catalog.default.sales VALUES (0, 0)")
spark.stop()
