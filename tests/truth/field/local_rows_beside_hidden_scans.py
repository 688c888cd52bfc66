"""Rows of the program's own beside aggregates that Delta answers from its log: both look alike in a plan."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sales = f"delta.`{sys.argv[1]}/sales`"
spark.sql("SELECT * FROM VALUES (1, 'a, x#1'), (2, '(b') AS t(id, label)").write.parquet("constants")
spark.createDataFrame([(1, "one"), (2, "two")], "id INT, name STRING").write.parquet("frame")
spark.sql("SELECT 1 AS one, current_date() AS day").write.json("single")
spark.sql("SELECT id, count(*) AS n FROM VALUES (1), (1), (2) AS t(id) GROUP BY id").write.parquet("counted")
spark.createDataFrame([(5,)], "id INT").createOrReplaceTempView("own")
spark.sql(f"SELECT o.id, m.hi FROM own o CROSS JOIN (SELECT max(id) AS hi FROM {sales}) m").write.parquet("mixed")
spark.sql(f"SELECT 'rows' AS what, count(*) AS n FROM {sales} UNION ALL SELECT 'own', 3").write.parquet("labelled")
spark.sql("SHOW TABLES").write.json("tables")
spark.stop()
