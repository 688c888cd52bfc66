"""CREATE OR REPLACE of a table that is there, and of two that are not; no rows; a view that is renamed and read."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, shop STRING").createOrReplaceTempView("orders")
spark.sql("CREATE OR REPLACE TABLE known USING delta AS SELECT id, amount FROM orders WHERE shop = 'north'")
spark.sql("CREATE OR REPLACE TABLE fresh USING delta AS SELECT shop, max(amount) AS most FROM orders GROUP BY shop")
spark.sql("CREATE OR REPLACE TABLE bare (id INT, amount INT) USING delta")
spark.sql("CREATE TABLE huge USING parquet AS SELECT id FROM orders WHERE amount > 1000")
spark.sql("INSERT INTO bare SELECT id, amount FROM orders WHERE amount < 0")

spark.sql("CREATE VIEW of_known AS SELECT id, amount * 2 AS doubled FROM known")
spark.sql("ALTER VIEW of_known RENAME TO of_known_2")
spark.sql("SELECT id, doubled FROM of_known_2 WHERE id > 1").write.parquet("doubled")
spark.stop()
