"""Two sessions of one application have views of the same name and different meaning, and share a table."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
other = spark.newSession()
spark.read.csv("north.csv", header=True, inferSchema=True).createOrReplaceTempView("sales")
other.read.csv("south.csv", header=True, inferSchema=True).createOrReplaceTempView("sales")
spark.sql("SELECT id FROM sales").write.parquet("north")
other.sql("SELECT id FROM sales").write.parquet("south")
spark.sql("CREATE TABLE shared USING parquet AS SELECT amount FROM sales")
other.sql("SELECT s.amount AS ours, t.amount AS theirs FROM sales s CROSS JOIN shared t").write.parquet("both")
spark.stop()
