"""Compacts a directory of small files: reads it, writes a copy without duplicates, and overwrites it with that copy."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.appName("compaction").getOrCreate()
before = len(list(Path("events").glob("*.parquet")))
events = spark.read.parquet("events")
unique = events.dropDuplicates(["id"]).select("id", "kind", f.col("at").cast("timestamp").alias("at"))
unique.coalesce(1).write.mode("overwrite").parquet("events_compacted")

copy = spark.read.parquet("events_compacted")
if copy.count() > events.select("id").distinct().count():
    message = "the copy has more rows than it should have"
    raise ValueError(message)
copy.sortWithinPartitions("at").write.mode("overwrite").parquet("events")
after = len(list(Path("events").glob("*.parquet")))
print(f"{before} files became {after}")
spark.stop()
