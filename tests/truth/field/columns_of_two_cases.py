"""Columns whose names differ in case alone, of which one has a source and another one is a literal."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, lit

spark = SparkSession.builder.config("spark.sql.caseSensitive", "true").getOrCreate()
events = spark.read.json("events.json")
events.select(lit(1).alias("ID"), "id", col("Val").alias("val"), col("val").alias("VAL")).write.parquet("both")
both = spark.read.parquet("both")
both.select("ID", "VAL").write.parquet("upper")
both.select("id", "val").write.parquet("lower")
both.where("ID = 1").select(col("VAL").alias("Val")).write.parquet("mixed")
spark.stop()
