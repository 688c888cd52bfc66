"""Lines of text become rows of DataFrames; other actions read other files, and one of two files feeds an output."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
print(sc.textFile("in/customers.txt").count(), "customers")
orders = sc.textFile("in/orders.txt").map(lambda line: line.split(",")).map(lambda parts: (parts[0], int(parts[1])))
spark.createDataFrame(orders, "customer STRING, amount INT").write.parquet("orders")
print(sc.textFile("in/checked.txt").filter(lambda line: "x" in line).count(), "checked")
frame = spark.createDataFrame(orders, "customer STRING, amount INT").where("amount > 1")
frame.groupBy("customer").agg(f.sum("amount").alias("total")).write.json("totals")
names = sc.textFile("in/customers.txt").map(lambda line: tuple(line.split(",")))
spark.createDataFrame(orders.join(names).map(lambda each: each[1]), "amount INT, name STRING").write.orc("named")
spark.stop()
