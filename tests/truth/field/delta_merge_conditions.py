"""Brings a supplier's feed into the inventory: six clauses, with NOT, IN, and plain booleans as their conditions."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
feed = spark.read.csv(
    "feed.csv",
    header=True,
    schema="sku STRING, title STRING, price DOUBLE, stock INT, kind STRING, discontinued BOOLEAN",
)
inventory = DeltaTable.forPath(spark, f"{sys.argv[1]}/inventory")
(
    inventory.alias("t")
    .merge(feed.alias("s"), "t.sku = s.sku")
    .whenMatchedDelete("s.discontinued")
    .whenMatchedUpdate(
        "NOT (t.price = s.price) AND s.kind IN ('book', 'toy')", set={"price": "s.price", "stock": "s.stock"}
    )
    .whenMatchedUpdate(set={"stock": "t.stock + s.stock"})
    .whenNotMatchedInsert(
        "s.stock > 0",
        values={"sku": "s.sku", "name": "s.title", "price": "s.price", "stock": "s.stock", "active": "true"},
    )
    .whenNotMatchedBySourceUpdate("t.active", set={"active": "false"})
    .whenNotMatchedBySourceDelete("t.stock = 0")
    .execute()
)
spark.stop()
