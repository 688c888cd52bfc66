"""Makes the sequence file ``codes``."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize([("a", 1), ("b", 2)], 1).saveAsSequenceFile("codes")
spark.stop()
