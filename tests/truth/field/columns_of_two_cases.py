"""Columns whose names differ in case alone, of which one has a source and another one is a literal."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.config("spark.sql.caseSensitive", "true").getOrCreate()
events = spark.read.json("events.json")
events.select(F.lit(1).alias("ID"), "id", F.col("Val").alias("val"), F.col("val").alias("VAL")).write.parquet("both")
both = spark.read.parquet("both")
both.select("ID", "VAL").write.parquet("upper")
both.select("id", "val").write.parquet("lower")
both.where("ID = 1").select(F.col("VAL").alias("Val")).write.parquet("mixed")
spark.stop()
