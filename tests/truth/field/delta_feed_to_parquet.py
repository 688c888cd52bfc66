"""Reads the change data feed of a Delta table: new states to Parquet, and counts per shop to Delta."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(f"{home}/orders")
states = feed.where(f.col("_change_type").isin("insert", "update_postimage")).selectExpr(
    "id", "amount", "_change_type AS change", "_commit_version AS version"
)
states.write.parquet(f"{home}/states")
touched = feed.where("amount > 0").groupBy("shop").agg(f.count("*").alias("changes"), f.max("amount").alias("most"))
touched.write.format("delta").mode("overwrite").save(f"{home}/touched")
spark.stop()
