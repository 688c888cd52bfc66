"""The Spark program of the listeners: makes, alters, renames and drops a table, and runs as many jobs as it is told."""

import sys

from pyspark.sql import SparkSession

jobs = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
for statement in (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (order_id INT, amount INT) USING parquet",
    "CREATE TABLE IF NOT EXISTS shop.orders (order_id INT, amount INT) USING parquet",
    "INSERT INTO shop.orders SELECT id, id * 3 FROM range(20)",
    "ALTER TABLE shop.orders ADD COLUMNS (country STRING)",
    "ALTER TABLE shop.orders RENAME TO shop.all_orders",
    "DROP TABLE shop.all_orders",
    "DROP DATABASE shop",
):
    spark.sql(statement)
    # The listener of OpenLineage looks a table up when it hears of it: on a busy machine that has gone by then.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
# Of no partitions: real jobs, which start and end like all others, without the time for a task.
nothing = spark.sparkContext._jsc.emptyRDD()
for _ in range(jobs):
    nothing.count()
spark.stop()
