"""A directory of CSV is streamed into partitioned Parquet, filtered, with a derived column."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.csv("in", header=True, schema="id INT, day STRING, amount INT, status STRING")
paid = orders.where("status = 'paid'").select("id", "day", (f.col("amount") * 100).alias("cents"))
sink = paid.writeStream.format("parquet").partitionBy("day").option("checkpointLocation", "checkpoint")
sink.trigger(availableNow=True).start("out").awaitTermination()
spark.read.parquet(f"{sys.argv[1]}/out").groupBy("day").agg(f.sum("cents").alias("total")).write.parquet("totals")
spark.stop()
