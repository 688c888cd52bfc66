"""Delta tables of a database that lies outside of the warehouse: made, filled, altered and never read."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, schema="id INT, amount INT").createOrReplaceTempView("orders")
spark.sql(f"CREATE DATABASE lake LOCATION '{home}/lake'")
spark.sql("CREATE TABLE lake.copied USING delta AS SELECT id, amount FROM orders")
spark.sql("CREATE OR REPLACE TABLE lake.summed USING delta AS SELECT sum(amount) AS total FROM orders")
spark.sql(f"CREATE TABLE lake.elsewhere USING delta LOCATION '{home}/far/elsewhere' AS SELECT id FROM orders")
spark.sql("USE lake")
spark.sql("CREATE TABLE here USING delta AS SELECT amount FROM orders WHERE id = 1")
spark.stop()
