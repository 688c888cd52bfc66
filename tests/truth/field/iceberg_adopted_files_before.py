"""Makes the Parquet table shops of Spark's own catalog."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE shops (id BIGINT, name STRING) USING parquet")
spark.sql("INSERT INTO shops VALUES (1, 'Ann'), (2, 'Bob')")
spark.stop()
