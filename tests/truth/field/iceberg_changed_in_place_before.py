"""Makes the Iceberg table accounts in two snapshots."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.accounts (id INT, cents INT, kind STRING) USING iceberg")
spark.sql("INSERT INTO ice.db.accounts VALUES (1, 10, 'open')")
spark.sql("INSERT INTO ice.db.accounts VALUES (2, 20, 'shut')")
spark.stop()
