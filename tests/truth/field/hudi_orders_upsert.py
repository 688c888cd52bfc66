"""Keeps a Hudi table of orders: bulk insert, upsert of changes, a delete of what became void, and a report from it."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

path = f"{sys.argv[1]}/orders"
options = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "version",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.metadata.enable": "false",
}
columns = "id INT, region STRING, amount INT, status STRING, version BIGINT"
spark = SparkSession.builder.getOrCreate()
base = spark.read.csv("base.csv", header=True, schema=columns)
changes = spark.read.csv("changes.csv", header=True, schema=columns)

for orders, operation, mode in ((base, "bulk_insert", "overwrite"), (changes, "upsert", "append")):
    writer = orders.write.format("hudi").options(**options)
    writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(path)

void = (
    spark.read.format("hudi").load(path).where("status = 'void'").select("id", "region", "amount", "status", "version")
)
deletes = void.write.format("hudi").options(**options)
deletes.option("hoodie.datasource.write.operation", "delete").mode("append").save(path)

totals = spark.read.format("hudi").load(path).groupBy("region").agg(f.sum("amount").alias("total"))
totals.write.mode("overwrite").parquet("totals")
spark.stop()
