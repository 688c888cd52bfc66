"""Makes a Delta table with a change feed."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
spark.sql(f"CREATE TABLE src (id INT, amount INT) USING delta {feed}")
spark.sql("INSERT INTO src VALUES (9, 9)")
spark.stop()
