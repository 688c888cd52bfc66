"""Good orders are written and counted, and a row with their number is added to an audit table of Delta."""

from datetime import UTC, datetime

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.where("amount > 10").write.parquet("good")
count = spark.read.parquet("good").count()
row = ("good", count, datetime(2024, 1, 1, tzinfo=UTC))
audit = spark.createDataFrame([row], "name STRING, n BIGINT, at TIMESTAMP")
audit.write.mode("append").format("delta").save("audit")
spark.stop()
