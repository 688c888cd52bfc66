"""Reads several log files, a glob, two partitions with basePath and multi-line JSON; looks up addresses by range."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
lines = spark.read.text(["logs/web1.log", "logs/web2.log"])
pattern = r"^(\S+) (\w+) (\d{3}) (\d+)$"
requests = lines.where(f.col("value").rlike(pattern)).select(
    f.regexp_extract("value", pattern, 1).cast("bigint").alias("address"),
    f.regexp_extract("value", pattern, 2).alias("page"),
    f.regexp_extract("value", pattern, 3).cast("int").alias("status"),
    f.input_file_name().alias("file"),
)
places = spark.read.option("multiLine", True).json("places.json", schema="low BIGINT, high BIGINT, country STRING")
located = requests.join(
    f.broadcast(places), (f.col("address") >= f.col("low")) & (f.col("address") <= f.col("high")), "left"
)
located.select("page", "status", f.coalesce("country", f.lit("??")).alias("country"), "file").write.parquet("located")

drops = spark.read.csv("drops/*.csv", header=True, schema="sku STRING, qty INT")
drops.select("sku", "qty", f.col("_metadata.file_name").alias("source")).write.parquet("stock")

days = spark.read.option("basePath", "visits").parquet("visits/day=2024-01-01", "visits/day=2024-01-03")
days.groupBy("page").agg(f.min("day").alias("first"), f.sum("seconds").alias("seconds")).write.parquet("visited")
spark.stop()
