"""Means per room and five minutes of a stream of readings, joined with sensors; hot readings go to another sink."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
sensors = spark.read.csv("sensors.csv", header=True, schema="sensor STRING, room STRING, floor INT")
readings = (
    spark.readStream.option("maxFilesPerTrigger", 1)
    .schema("sensor STRING, at TIMESTAMP, value DOUBLE, battery INT")
    .json("readings")
)
means = (
    readings.withWatermark("at", "10 minutes")
    .join(sensors, "sensor")
    .groupBy(f.window("at", "5 minutes"), "room")
    .agg(f.avg("value").alias("mean"))
    .select(f.col("window.start").alias("start"), "room", "mean")
)
hot = readings.where("value > 30").select("sensor", "at", f.round("value", 1).alias("value"))
queries = (
    means.writeStream.format("parquet").outputMode("append").option("path", "means"),
    hot.writeStream.format("json").option("path", "hot"),
)
for name, query in zip(("means", "hot"), queries, strict=True):
    query.option("checkpointLocation", f"checkpoints/{name}").trigger(availableNow=True).start().awaitTermination()
spark.stop()
