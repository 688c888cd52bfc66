"""Delta tables by path: a day is replaced, another read; a stream replaces days; rows are added, and all are read."""

import sys

from pyspark.sql import DataFrame, SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
fresh = spark.read.csv("fresh.csv", header=True, schema="code STRING, pieces INT, day STRING")

of_day = fresh.selectExpr("day", "code AS sku", "pieces AS qty").where("day = '2024-01-02'")
of_day.write.format("delta").mode("overwrite").option("replaceWhere", "day = '2024-01-02'").save(f"{home}/sales")
yesterday = spark.read.format("delta").load(f"{home}/sales").where("day = '2024-01-01'")
yesterday.select("sku", "qty").write.parquet("yesterday")


def replace_days(batch: DataFrame, _: int) -> None:
    """Replace the days that a batch has."""
    days = batch.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
    days.save(f"{home}/visits")


clicks = spark.readStream.csv("clicks", header=True, schema="page STRING, hits INT, day STRING")
query = clicks.writeStream.foreachBatch(replace_days).option("checkpointLocation", f"{home}/checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
spark.read.format("delta").load(f"{home}/visits").select("page", "hits").write.parquet("visited")
first = spark.read.format("delta").load(f"{home}/visits").where("day = '2024-01-01'")
first.select("hits").write.parquet("first")

fresh.selectExpr("code AS sku", "pieces AS qty").write.format("delta").mode("append").save(f"{home}/stock")
spark.read.format("delta").load(f"{home}/stock").select("qty").write.parquet("stocked")

fresh.selectExpr("code AS sku", "pieces AS qty").write.format("delta").mode("append").save(f"{home}/made")
spark.read.format("delta").load(f"{home}/made").select("qty").write.parquet("again")
spark.stop()
