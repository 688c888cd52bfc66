"""Catalog tables: CTAS, INSERT of a constant, a replacement made from an older version, ALTER, a table that goes."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="day STRING, shop INT, amount INT")
orders.createOrReplaceTempView("orders")
spark.sql("CREATE TABLE daily USING delta AS SELECT day, sum(amount) AS total FROM orders WHERE shop = 1 GROUP BY day")
spark.sql("INSERT INTO daily VALUES ('later', 0)")
spark.sql("CREATE TABLE top USING delta AS SELECT shop FROM orders")
spark.sql("CREATE OR REPLACE TABLE top USING delta AS SELECT day, total FROM daily VERSION AS OF 0 WHERE total > 10")
spark.sql("CREATE TABLE scratch USING delta AS SELECT day FROM daily")
spark.sql("ALTER TABLE daily ADD COLUMNS (note STRING)")
spark.sql("DROP TABLE scratch")
spark.stop()
