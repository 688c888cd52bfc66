"""A MERGE of all columns adds a column to the target, and so does an append with mergeSchema to an audit table."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
changes = spark.read.json("changes.json", schema="id INT, email STRING, phone STRING, at TIMESTAMP")
source = changes.select("id", f.lower("email").alias("email"), "phone")
(
    DeltaTable.forPath(spark, f"{home}/profiles")
    .alias("target")
    .merge(source.alias("source"), "target.id = source.id")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute()
)
audit = changes.select("id", f.to_date("at").alias("day"), f.lit("profile").alias("what"))
audit.write.format("delta").mode("append").option("mergeSchema", "true").save(f"{home}/audit")
spark.stop()
