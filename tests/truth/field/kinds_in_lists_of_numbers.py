"""A table partitioned by texts that look like numbers, which the task fills in part and reads by lists of values."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.json("old.json").write.partitionBy("kind").parquet("kinds")
new = spark.read.json("new.json")
new.select("v").write.mode("overwrite").parquet("kinds/kind=1,2")
kinds = spark.read.parquet("kinds")
kinds.where("kind IN ('1,2', '3')").select("v").write.parquet("both")
kinds.where("kind IN ('4', '3')").select("v").write.parquet("others")
spark.stop()
