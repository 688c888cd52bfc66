"""Merges readings into a Delta table of 32 columns: 28 are replaced, one is added up, one keeps the greater value."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
measures = [f"m{n:02}" for n in range(1, 31)]
schema = ", ".join(["id INT", *(f"{name} INT" for name in measures), "quality STRING"])
spark = SparkSession.builder.getOrCreate()
readings = spark.read.csv("readings.csv", header=True, schema=schema)

good = readings.where("quality <> 'bad'").drop("quality")
changes = {name: f"s.{name}" for name in measures[:28]}
changes |= {"m29": "t.m29 + s.m29", "m30": "CASE WHEN s.m30 > t.m30 THEN s.m30 ELSE t.m30 END"}
(
    DeltaTable.forPath(spark, f"{home}/meters")
    .alias("t")
    .merge(good.alias("s"), "t.id = s.id")
    .whenMatchedUpdate(set=changes)
    .whenNotMatchedInsert(values={"id": "s.id", "source": "'new'"} | {name: f"s.{name}" for name in measures})
    .execute()
)
profile = readings.agg(*(f.avg(name).alias(f"avg_{name}") for name in measures))
profile.write.mode("overwrite").json(f"{home}/profile")
spark.stop()
