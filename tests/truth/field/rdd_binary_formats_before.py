"""Makes a pickle file of scores, and a sequence file of names."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
sc.parallelize([("a", 1.5), ("b", 2.5)], 1).saveAsPickleFile("scores")
sc.parallelize([("a", "Ann"), ("b", "Bob")], 1).saveAsSequenceFile("names")
spark.stop()
