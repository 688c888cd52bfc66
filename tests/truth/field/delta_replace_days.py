"""A backfill: the partitions of some days of a Delta table are made anew from landing files with replaceWhere."""

import sys
from datetime import date, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
first, last = date(2024, 1, 2), date(2024, 1, 3)
spark = SparkSession.builder.getOrCreate()
landing = spark.read.csv("landing", header=True, schema="shop INT, amount INT, status STRING, day STRING")

for day in (first + timedelta(days=n) for n in range((last - first).days + 1)):
    of_day = landing.where((f.col("day") == str(day)) & (f.col("status") != "void"))
    totals = of_day.groupBy("day", "shop").agg(f.sum("amount").alias("amount"))
    (
        totals.write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", f"day = '{day}'")
        .partitionBy("day")
        .save(f"{home}/sales")
    )
    print(day, "done")
spark.stop()
