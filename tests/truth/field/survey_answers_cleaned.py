"""Answers of two years are united and filled; they are looked at, summed by a dict of functions, and sampled."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
old = spark.read.csv("answers_2023.csv", header=True, inferSchema=True)
new = spark.read.csv("answers_2024.csv", header=True, inferSchema=True)
answers = (
    old.withColumn("year", f.lit(2023))
    .unionByName(new.withColumn("year", f.lit(2024)), allowMissingColumns=True)
    .dropna(subset=["person"])
    .na.fill({"score": 0, "city": "unknown"})
    .withColumns({"score": f.col("score").cast("double"), "short": f.substring("comment", 1, 10)})
)
answers.write.mode("overwrite").parquet("answers")
clean = spark.read.parquet("answers")
clean.crosstab("city", "year").show()
clean.describe("score").show()
low, high = clean.approxQuantile("score", [0.1, 0.9], 0.0)
clean.groupBy("city").agg({"score": "avg", "person": "count"}).write.parquet("by_city")
clean.where(f.col("score").between(low, high)).select("person", "score").write.csv("typical")
clean.sampleBy("city", {"Oslo": 1.0, "unknown": 0.5}, seed=7).select("person", "short").write.json("sample")
spark.stop()
