"""Makes five Iceberg tables of the columns id and amount, each with one row."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for table in ("known", "swapped", "frame", "frame_2", "grown"):
    spark.sql(f"CREATE TABLE ice.db.{table} USING iceberg AS SELECT 0 AS id, 0 AS amount")
spark.stop()
