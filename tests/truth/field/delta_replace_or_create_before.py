"""Makes the Delta table known in versions 0 and 1."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE known (id INT, amount INT) USING delta")
spark.sql("INSERT INTO known VALUES (0, 0)")
spark.stop()
