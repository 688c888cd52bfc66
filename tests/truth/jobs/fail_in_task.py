"""One output is written; the next write joins a second file and breaks in a task; nobody catches it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.select("id", "status").write.parquet("good")
limits = spark.read.csv("limits.csv", header=True, schema="id INT, cap INT")
over = orders.join(limits, "id").selectExpr("id", "IF(amount > cap, raise_error('over'), amount) AS amount")
over.write.parquet("bad")
spark.stop()
