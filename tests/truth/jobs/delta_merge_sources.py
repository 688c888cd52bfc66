"""MERGE into Delta tables from a table as it is, a join, a plain file, in full outer joins, and of micro-batches."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
# From a Delta table as it is: without a copy of the source.
spark.sql(f"""
    MERGE INTO delta.`{home}/upserted` t USING delta.`{home}/feed` s ON t.id = s.key
    WHEN MATCHED AND s.op = 'U' THEN UPDATE SET name = s.label, visits = t.visits + s.seen
    WHEN NOT MATCHED THEN INSERT (id, name, visits) VALUES (s.key, s.label, s.seen)
""")
# A full outer join.
spark.sql(f"""
    MERGE INTO delta.`{home}/synced` t USING (SELECT key, concat(label, '!') AS label FROM delta.`{home}/feed`) s
    ON t.id = s.key
    WHEN MATCHED THEN UPDATE SET name = s.label
    WHEN NOT MATCHED THEN INSERT (id, name, visits) VALUES (s.key, s.label, 0)
    WHEN NOT MATCHED BY SOURCE AND t.visits < 4 THEN DELETE
""")
# From a join of two tables.
spark.sql(f"""
    MERGE INTO delta.`{home}/joined` t
    USING (SELECT a.key, a.label, b.bonus FROM delta.`{home}/feed` a JOIN delta.`{home}/bonus` b ON a.key = b.key) s
    ON t.id = s.key
    WHEN MATCHED THEN UPDATE SET visits = s.bonus
    WHEN NOT MATCHED THEN INSERT (id, name, visits) VALUES (s.key, s.label, s.bonus)
""")
# From a file, as it is, in a full outer join, and only to change what is there.
spark.conf.set("spark.databricks.delta.merge.materializeSource", "none")
(
    DeltaTable.forPath(spark, f"{home}/kept")
    .alias("t")
    .merge(spark.read.parquet("plain").alias("s"), "t.id = s.key")
    .whenMatchedUpdate(set={"name": "s.label"})
    .whenNotMatchedBySourceUpdate(set={"visits": "0"})
    .execute()
)
spark.sql(f"""
    MERGE INTO delta.`{home}/starred` t USING delta.`{home}/arrivals` s ON t.id = s.id
    WHEN NOT MATCHED THEN INSERT *
""")
spark.conf.unset("spark.databricks.delta.merge.materializeSource")


def upsert(batch: DataFrame, _: int) -> None:
    """Merge a batch, two columns of which come from one."""
    changed = batch.select("key", f.upper("label").alias("name"), "label", "seen")
    (
        DeltaTable.forPath(batch.sparkSession, f"{home}/batched")
        .alias("t")
        .merge(changed.alias("s"), "t.id = s.key")
        .whenMatchedUpdate(set={"name": "s.name", "visits": "t.visits + s.seen"})
        .whenNotMatchedInsert(values={"id": "s.key", "name": "s.label", "visits": "s.seen"})
        .execute()
    )


feed = spark.readStream.format("delta").load(f"{home}/feed").where("op <> 'D'")
merging = feed.writeStream.foreachBatch(upsert).option("checkpointLocation", f"{home}/checkpoints/batched")
merging.trigger(availableNow=True).start().awaitTermination()

copy = feed.select("key", f.lower("label").alias("label"), (f.col("seen") * 2).alias("double"))
sink = copy.writeStream.format("delta").option("checkpointLocation", f"{home}/checkpoints/archive")
sink.trigger(availableNow=True).start(f"{home}/archive").awaitTermination()
spark.stop()
