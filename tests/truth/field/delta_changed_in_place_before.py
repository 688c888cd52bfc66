"""Makes the Delta table accounts in versions 0 and 1."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE accounts (id INT, cents INT, status STRING) USING delta")
spark.sql("INSERT INTO accounts VALUES (1, 10, 'open'), (2, 20, 'shut'), (3, 30, 'open')")
spark.stop()
