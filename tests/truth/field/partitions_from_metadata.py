"""Aggregates of partition columns that the catalog answers (spark.sql.optimizer.metadataOnly)."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.read.parquet("fact").createOrReplaceTempView("fact")
spark.sql("SELECT max(d) FROM fact").write.parquet("o1")
spark.sql("SELECT DISTINCT d FROM fact").write.parquet("o2")
spark.sql("SELECT max(day) AS m FROM t").write.parquet("o3")
spark.stop()
