"""Makes an Iceberg table with a row."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.t (id INT, amount INT) USING iceberg")
spark.sql("INSERT INTO ice.db.t VALUES (9, 9)")
spark.stop()
