"""Sums of a join that pandas makes in the driver are written back as a frame."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
custs = spark.read.csv("custs.csv", header=True, schema="cid INT, name STRING, city STRING")
frame = orders.join(custs, orders.cust == custs.cid).select("name", "amount").toPandas()
sums = frame.groupby("name", as_index=False)["amount"].sum()
spark.createDataFrame(sums).write.mode("overwrite").parquet("sums")
spark.stop()
