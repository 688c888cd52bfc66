"""Makes a Delta table with generated columns, appends events to it, compacts it, and counts by the generated day."""

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
(
    DeltaTable.create(spark)
    .tableName("events")
    .addColumn("id", "INT")
    .addColumn("at", "TIMESTAMP")
    .addColumn("kind", "STRING")
    .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
    .addColumn("label", "STRING", generatedAlwaysAs="concat(kind, '-', id)")
    .partitionedBy("day")
    .execute()
)
raw = spark.read.csv("raw.csv", header=True, schema="id INT, at TIMESTAMP, kind STRING, note STRING")
for kind in ("open", "close"):
    some = raw.where((f.col("kind") == kind) & f.col("at").isNotNull()).select("id", "at", "kind")
    some.write.format("delta").mode("append").saveAsTable("events")
DeltaTable.forName(spark, "events").optimize().executeCompaction()
per_day = spark.table("events").groupBy("day").agg(f.countDistinct("label").alias("labels"))
per_day.write.mode("overwrite").parquet("per_day")
spark.stop()
