"""One output is appended to twice; another is appended to, and then overwritten from elsewhere."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
a, b, c = (spark.read.csv(f"{name}.csv", header=True, inferSchema=True) for name in "abc")
a.write.mode("append").parquet("grown")
b.selectExpr("id", "price AS amount").write.mode("append").parquet("grown")
a.write.mode("append").parquet("replaced")
c.write.mode("overwrite").parquet("replaced")
spark.stop()
