"""Lines of an access log are taken apart, and written as ORC, JSON, compressed CSV and text."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

LINE = r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\w+) (\S+) [^"]*" (\d{3}) (\d+)$'
spark = SparkSession.builder.getOrCreate()
lines = spark.read.text("access.log").where(f.col("value").rlike(LINE))
parts = {"host": 1, "at": 2, "verb": 3, "path": 4, "status": 5, "size": 6}
requests = lines.select(*(f.regexp_extract("value", LINE, number).alias(name) for name, number in parts.items()))
requests = requests.withColumns(
    {"status": f.col("status").cast("int"), "size": f.col("size").cast("bigint"), "path": f.lower("path")}
)
requests.write.mode("overwrite").orc("requests")
stored = spark.read.orc("requests")
stored.where("status >= 500").select("host", "path", f.struct("verb", "status").alias("what")).write.json("errors")
hits = stored.groupBy("path").agg(f.count("host").alias("hits"), f.expr("percentile_approx(size, 0.5)").alias("median"))
hits.orderBy(f.desc("hits")).write.option("compression", "gzip").csv("hits")
hits.select(f.concat_ws("\t", "path", "median").alias("value")).write.text("medians")
spark.stop()
