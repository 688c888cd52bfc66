"""Delta tables whose columns are renamed and dropped after they were written, within one task, and read again."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, note STRING, city STRING")
orders.createOrReplaceTempView("orders")
mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
spark.sql(f"""
    CREATE TABLE sales USING delta LOCATION '{home}/sales' {mapping} AS
    SELECT id, amount AS amt, note, upper(city) AS city FROM orders WHERE amount > 0
""")
spark.sql("ALTER TABLE sales RENAME COLUMN amt TO total")
spark.sql("ALTER TABLE sales RENAME COLUMN city TO place")
spark.sql("ALTER TABLE sales DROP COLUMN note")
spark.sql("SELECT id, total * 2 AS twice, place FROM sales").write.parquet("twice")
spark.sql("ALTER TABLE sales RENAME COLUMN place TO `where is it`")

as_select = "AS SELECT id AS a, amount AS b FROM orders"
spark.sql(f"CREATE TABLE swapped USING delta LOCATION '{home}/swapped' {mapping} {as_select}")
spark.sql("ALTER TABLE swapped RENAME COLUMN a TO c")
spark.sql("ALTER TABLE swapped RENAME COLUMN b TO a")
spark.sql("ALTER TABLE swapped RENAME COLUMN c TO b")

spark.sql("SELECT id, value FROM old").write.parquet("early")
spark.sql("ALTER TABLE old RENAME COLUMN VALUE TO price")
spark.sql("SELECT id, price FROM old WHERE price > 1").write.parquet("late")
spark.sql("INSERT INTO old SELECT id, amount FROM orders")
spark.sql("ALTER TABLE old RENAME COLUMN price TO cost")

orders.select("id", "Amount").write.format("delta").option("delta.columnMapping.mode", "name").save("placed")
spark.sql(f"ALTER TABLE delta.`{home}/placed` RENAME COLUMN AMOUNT TO Paid")
spark.sql(f"ALTER TABLE delta.`{home}/placed` ADD COLUMN note STRING")
spark.stop()
