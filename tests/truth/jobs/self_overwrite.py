"""Merges updates into a target through a staging table: write staging, overwrite the target from it, drop staging."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
target = spark.read.parquet("target")
updates = spark.read.csv("updates.csv", header=True, schema="id INT, price INT")
joined = target.join(updates, "id", "left").select("id", f.coalesce("price", "amount").alias("amount"))
joined.write.saveAsTable("staging")
spark.table("staging").write.mode("overwrite").parquet("target")
spark.sql("DROP TABLE staging")
spark.stop()
