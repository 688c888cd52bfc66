"""Four files, one micro-batch each, into one file sink."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.option("maxFilesPerTrigger", 1).json("in", schema="id INT, kind STRING")
sink = events.where("kind <> 'noise'").writeStream.format("json").option("checkpointLocation", "checkpoint")
sink.trigger(availableNow=True).start("out").awaitTermination()
spark.stop()
