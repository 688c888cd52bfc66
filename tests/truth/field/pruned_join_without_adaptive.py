"""A join prunes the partitions of its facts, without adaptive execution and some rules of the optimizer."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.parquet("fact").createOrReplaceTempView("fact")
spark.read.parquet("dim").createOrReplaceTempView("dim")
spark.sql("SELECT n, v + id FROM (SELECT * FROM fact JOIN dim ON d = k) WHERE n = 'a'").write.parquet("o1")
spark.sql("SELECT d, sum(v) + 1 FROM fact GROUP BY ALL").write.parquet("o2")
spark.stop()
