"""Rows are fixed in a branch of an Iceberg table while main is read; then the branch is read as well."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
spark.read.csv("fixes.csv", header=True, schema="id INT, cents INT, author STRING").createOrReplaceTempView("fixes")
spark.sql("ALTER TABLE ice.db.accounts CREATE BRANCH fix")
spark.sql("INSERT INTO ice.db.accounts.branch_fix SELECT id, cents FROM fixes WHERE author <> 'robot'")

spark.table("ice.db.accounts").agg(f.sum("cents").alias("cents")).write.json("main")
spark.sql("SELECT id FROM ice.db.accounts VERSION AS OF 'main' WHERE cents < 0").write.json("negative")
fixed = spark.read.option("branch", "fix").format("iceberg").load("ice.db.accounts")
fixed.select("id", "cents").write.parquet("fixed")
spark.stop()
