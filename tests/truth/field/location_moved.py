"""Tables are given other places: one after it was filled, one that was only laid over files, one to read old files."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT")
orders.createOrReplaceTempView("orders")
spark.sql(f"CREATE TABLE filled (id INT, amount INT) USING parquet LOCATION '{home}/lake/filled_1'")
spark.sql("INSERT INTO filled SELECT id, amount FROM orders WHERE id = 1")
spark.sql(f"ALTER TABLE filled SET LOCATION '{home}/lake/filled_2'")
spark.sql("INSERT INTO filled SELECT id, amount FROM orders WHERE amount > 15")

spark.sql(f"CREATE TABLE laid (id INT, amount INT) USING parquet LOCATION '{home}/lake/laid_1'")
spark.sql(f"ALTER TABLE laid SET LOCATION '{home}/lake/laid_2'")
spark.sql("INSERT OVERWRITE laid SELECT id, amount FROM orders")

spark.sql(f"CREATE TABLE pointed (id BIGINT, name STRING) USING parquet LOCATION '{home}/lake/names_1'")
spark.sql(f"ALTER TABLE pointed SET LOCATION '{home}/lake/names_2'")
spark.sql("SELECT p.name, f.amount FROM filled f JOIN pointed p ON p.id = f.id").write.parquet("named")
spark.stop()
