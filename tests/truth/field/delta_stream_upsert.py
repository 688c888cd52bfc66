"""A stream out of a Delta table: sums of each batch are merged into totals; another query fills a Delta sink."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


def upsert(batch: DataFrame, _: int) -> None:
    """Add a batch's sums to the totals."""
    sums = batch.groupBy("customer").agg(f.sum("amount").alias("total"))
    (
        DeltaTable.forPath(batch.sparkSession, f"{home}/totals")
        .alias("t")
        .merge(sums.alias("s"), "t.customer = s.customer")
        .whenMatchedUpdate(set={"total": "t.total + s.total"})
        .whenNotMatchedInsertAll()
        .execute()
    )


orders = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{home}/orders").where("amount > 0")
sums = orders.writeStream.foreachBatch(upsert).option("checkpointLocation", f"{home}/checkpoints/sums")
sums.trigger(availableNow=True).start().awaitTermination()

copy = orders.withColumn("customer", f.upper("customer")).select("id", "customer")
archive = copy.writeStream.format("delta").option("checkpointLocation", f"{home}/checkpoints/archive")
archive.trigger(availableNow=True).start(f"{home}/archive").awaitTermination()
spark.stop()
