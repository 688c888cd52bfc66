"""The newest change of each customer, from a file, is merged into a Delta table: delete, update and insert."""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
changes = spark.read.csv("changes.csv", header=True, schema="id INT, name STRING, city STRING, op STRING, seq INT")
newest = Window.partitionBy("id").orderBy(f.desc("seq"))
changes.withColumn("n", f.row_number().over(newest)).where("n = 1").createOrReplaceTempView("newest")
spark.sql(f"""
    MERGE INTO delta.`{sys.argv[1]}/customers` t USING newest s ON t.id = s.id
    WHEN MATCHED AND s.op = 'D' THEN DELETE
    WHEN MATCHED THEN UPDATE SET name = upper(s.name), city = s.city
    WHEN NOT MATCHED THEN INSERT (id, name, city, visits) VALUES (s.id, s.name, s.city, 0)
""")
spark.stop()
