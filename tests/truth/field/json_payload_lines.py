"""A column of JSON is parsed: its items become rows, functions of arrays sum them, and some of it is JSON again."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
schema = """
    customer STRUCT<name: STRING, city: STRING>,
    items ARRAY<STRUCT<sku: STRING, qty: INT, price: DOUBLE>>,
    tags MAP<STRING, STRING>
"""
events = spark.read.parquet("events.parquet")
parsed = events.select("id", "received", f.from_json("payload", schema).alias("p"))
lines = parsed.select("id", f.col("p.customer.name").alias("customer"), f.posexplode("p.items").alias("line", "item"))
lines.select(
    "id", "customer", "line", "item.sku", (f.col("item.qty") * f.col("item.price")).alias("amount")
).write.parquet("lines")
parsed.select(
    "id",
    f.aggregate("p.items", f.lit(0.0), lambda total, item: total + item.qty * item.price).alias("total"),
    f.transform("p.items", lambda item: f.upper(item.sku)).alias("skus"),
    f.size("p.items").alias("n"),
    f.map_keys("p.tags").alias("tag_names"),
    f.element_at("p.tags", "channel").alias("channel"),
    f.to_json(f.struct("id", "p.customer", f.date_format("received", "yyyy-MM").alias("month"))).alias("envelope"),
).write.parquet("orders")
parsed.select("id", f.explode("p.tags").alias("tag", "text")).where("tag <> 'debug'").write.json("tags")
events.select("id", f.get_json_object("payload", "$.customer.city").alias("city")).write.csv("cities")
spark.stop()
