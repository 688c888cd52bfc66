"""Puts customers into the segments of a KMeans model that another job has fitted, and counts the segments."""

from pyspark.ml import PipelineModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
model = PipelineModel.load("segment_model")
visits = spark.read.json("visits.json", schema="customer STRING, day DATE, minutes DOUBLE, amount DOUBLE")
features = visits.groupBy("customer").agg(f.sum("minutes").alias("visits"), f.avg("amount").alias("spend"))
segments = model.transform(features).select("customer", "segment")
segments.write.mode("overwrite").parquet("segments")
sizes = spark.read.parquet("segments").groupBy("segment").agg(f.count("*").alias("customers"))
sizes.coalesce(1).write.mode("overwrite").csv("segment_sizes", header=True)
spark.stop()
