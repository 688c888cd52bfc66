"""An RDD of a log is joined with rows of a CSV, becomes a DataFrame, and meets a Parquet table in a join."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
people = spark.read.csv("people/people.csv", header=True, schema="id STRING, city STRING")
prices = spark.read.parquet("prices.parquet")
hits = sc.textFile("logs/today.log").map(lambda line: (line.split(" ")[0], 1)).reduceByKey(lambda one, two: one + two)
known = hits.join(people.rdd.map(lambda row: (row.id, row.city))).map(lambda each: (each[1][1], each[1][0]))
frame = known.toDF(["city", "hits"])
frame.join(prices, "city").select("city", "price", (f.col("price") * f.col("hits")).alias("due")).write.parquet("due")
print(sc.wholeTextFiles("logs").count(), "logs")
print(spark.read.csv("people/people.csv").count(), "lines")
parts = sc.textFile("logs/today.log").map(lambda line: line.split(" ")).filter(lambda parts: len(parts) > 1)
parts.toDF(["who", "what"]).write.mode("overwrite").saveAsTable("visits")
spark.table("visits").groupBy("what").count().write.parquet("counts")
spark.stop()
