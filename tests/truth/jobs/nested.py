"""Structs, arrays and maps: taken apart, exploded, and put together again."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
schema = (
    "user STRUCT<id: INT, name: STRING>, items ARRAY<STRUCT<sku: STRING, qty: INT>>, tags MAP<STRING, INT>, day INT"
)
events = spark.read.json("events.json", schema=schema)
items = events.select(f.col("user.id").alias("user_id"), f.explode("items").alias("item"))
items.select("user_id", "item.sku", (f.col("item.qty") * 2).alias("qty")).write.parquet("items")
events.select("day", f.explode("tags").alias("tag", "content")).write.parquet("tags")
both = events.select(f.struct("user.name", "day").alias("both"), f.create_map("day", "user.id").alias("map"))
both.write.parquet("both")
spark.stop()
