"""A Spark program that declares what no listener sees, and then ends in the way that it is told."""

import sys

from pyspark.sql import SparkSession

from spark_lineage.declare import column, read, wrote

mode, orders, out = sys.argv[1:]
# Before there is a session.
rates = read("https://me:hunter2@rates.example.com/latest?token=hunter2", ["rate"])
spark = SparkSession.builder.getOrCreate()
frame = spark.read.schema("order_id int, amount int").option("header", True).csv(orders)
frame.write.mode("overwrite").parquet(f"{out}/{mode}")
# The same dataset, spelled differently: a column came from elsewhere too.
written = wrote(f"file://{out}/{mode}/", {"amount": rates["rate"]}, inputs=[rates])
wrote(
    "postgres://warehouse/shop.public.totals",
    {"total": column(written, "amount", how="AGGREGATION")},
    inputs=[written],
    rows=1,
)
spark.sparkContext.parallelize([1, 2], 2).foreach(lambda _: read("/never"))
if mode == "declares_and_fails":
    raise RuntimeError("failed after it had declared")
spark.stop()
