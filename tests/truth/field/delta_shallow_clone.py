"""A Delta table is cloned without its files; rows are added to the clone, and a report is made of it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("fixes.csv", header=True, schema="id INT, cents INT").createOrReplaceTempView("fixes")
spark.sql("CREATE TABLE trial SHALLOW CLONE accounts")
spark.sql("INSERT INTO trial SELECT id, cents FROM fixes WHERE cents <> 0")
spark.sql("CREATE OR REPLACE TABLE kept SHALLOW CLONE accounts VERSION AS OF 1")
spark.sql("SELECT id, sum(cents) AS cents FROM trial GROUP BY id").write.parquet("balances")
spark.stop()
