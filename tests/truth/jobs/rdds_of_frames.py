"""Data frames whose rows go through RDDs: into text, into a data frame again, and into a model."""

from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
people = spark.read.csv("in/people.csv", header=True)
people.rdd.map(lambda row: row.name.upper()).saveAsTextFile("out/names")
ages = spark.read.csv("staff/ages.csv", header=True, inferSchema=True)
spark.createDataFrame(ages.rdd.map(lambda row: (row.name, row.age + 1)), "name string, age int").write.parquet(
    "out/older"
)
spark.read.json("events").rdd.map(str).saveAsTextFile("out/events")
spark.read.parquet("tables/ratings").rdd.map(str).saveAsTextFile("out/ratings")
ratings = spark.read.csv("ratings", schema="person int, item int, stars float")
ALS(userCol="person", itemCol="item", ratingCol="stars", rank=2, maxIter=1, seed=1).fit(ratings).save("models/als")
spark.stop()
