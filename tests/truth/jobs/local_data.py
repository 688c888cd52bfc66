"""What is written comes from the program itself."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.createDataFrame([(1, "a"), (2, "b")], "id INT, name STRING").write.parquet("lookup")
spark.range(5).selectExpr("id", "id * 2 AS twice").write.mode("overwrite").json("numbers")
spark.sql("CREATE TABLE constants USING parquet AS SELECT 1 AS one, 'x' AS letter")
spark.sql("INSERT INTO constants VALUES (2, 'y'), (3, 'z')")
spark.stop()
