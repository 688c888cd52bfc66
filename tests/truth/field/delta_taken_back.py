"""Sorted rows are written in partitions; an append to a Delta table is taken back."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
fresh = spark.read.csv("fresh.csv", header=True, schema="code STRING, pieces INT, day STRING, n INT")
fresh.sortWithinPartitions("day").write.partitionBy("day").parquet("by_day")
fresh.sortWithinPartitions("n").write.partitionBy("n").parquet("by_n")
fresh.sortWithinPartitions("day", "pieces").write.partitionBy("day").parquet("by_both")
fresh.sortWithinPartitions("n", "day").write.partitionBy("n", "day").parquet("by_two")
fresh.sortWithinPartitions("day").where("pieces > 1").write.partitionBy("day").json("by_where")
fresh.sortWithinPartitions("day").selectExpr("code", "trim(day) AS day").write.partitionBy("day").json("by_trim")
fresh.sortWithinPartitions("day").write.partitionBy("day").saveAsTable("by_table")
rows = fresh.selectExpr("code AS sku", "pieces AS qty")
rows.write.format("delta").mode("append").save(f"{home}/stock")
spark.sql(f"RESTORE TABLE delta.`{home}/stock` TO VERSION AS OF 1")
spark.read.format("delta").load(f"{home}/stock").write.parquet("stock_now")
spark.stop()
