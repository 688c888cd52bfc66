"""Keeps the history of customers in a Delta table: one MERGE closes the version that changed and opens a new one."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.appName("scd2").getOrCreate()
dim = DeltaTable.forPath(spark, f"{sys.argv[1]}/dim_customers")
updates = spark.read.csv("updates.csv", header=True, schema="id INT, name STRING, city STRING, day DATE")

moved = (
    updates.alias("u")
    .join(dim.toDF().alias("d"), f.expr("u.id = d.id"))
    .where("d.current AND u.city <> d.city")
    .selectExpr("CAST(NULL AS INT) AS merge_key", "u.*")
)
staged = moved.unionByName(updates.selectExpr("id AS merge_key", "*"))

(
    dim.alias("d")
    .merge(staged.alias("s"), "d.id = s.merge_key")
    .whenMatchedUpdate("d.current AND d.city <> s.city", set={"current": "false", "valid_to": "s.day"})
    .whenNotMatchedInsert(
        values={
            "id": "s.id",
            "name": "s.name",
            "city": "s.city",
            "valid_from": "s.day",
            "valid_to": "CAST(NULL AS DATE)",
            "current": "true",
        }
    )
    .execute()
)
spark.stop()
