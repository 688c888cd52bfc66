"""The first micro-batch is written; a row of the second breaks the query, and the program with it."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for number in (1, 2):
    os.utime(f"in/{number}.csv", (number, number))
rows = spark.readStream.option("maxFilesPerTrigger", 1).csv("in", header=True, schema="id INT, amount INT")
checked = rows.selectExpr("id", "IF(amount < 0, raise_error('negative'), amount) AS amount")
sink = checked.writeStream.format("parquet").option("checkpointLocation", "checkpoint").trigger(availableNow=True)
sink.start("out").awaitTermination()
spark.stop()
