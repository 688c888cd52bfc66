"""Makes the Delta table accounts in versions 0 to 2."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE accounts (id INT, cents INT) USING delta")
spark.sql("INSERT INTO accounts VALUES (1, 10)")
spark.sql("INSERT INTO accounts VALUES (2, 20)")
spark.stop()
