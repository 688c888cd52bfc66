"""Clicks, without repetitions, are joined with a static file and counted by hour, as the watermark lets them go."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
pages = spark.read.csv("pages.csv", header=True, schema="page STRING, topic STRING")
clicks = spark.readStream.csv("clicks", header=True, schema="id INT, at TIMESTAMP, page STRING, seconds INT")
once = clicks.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["id"])
hours = once.join(pages, "page").groupBy(f.window("at", "1 hour"), "topic").agg(f.sum("seconds").alias("spent"))
flat = hours.select(f.col("window.start").alias("hour"), "topic", "spent")
sink = flat.writeStream.format("parquet").option("checkpointLocation", "checkpoint")
sink.trigger(availableNow=True).start("hours").awaitTermination()
spark.stop()
