"""A recursive CTE walks from the bosses down; its result is summed by boss; another recursion makes a calendar."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
staff = spark.read.csv("staff.csv", header=True, schema="id INT, name STRING, boss_id INT, salary INT, hired DATE")
staff.createOrReplaceTempView("staff")
spark.sql("""
    WITH RECURSIVE chain (id, name, root, depth, path, salary) AS (
        SELECT id, name, name, 0, name, salary FROM staff WHERE boss_id IS NULL
        UNION ALL
        SELECT s.id, s.name, c.root, c.depth + 1, concat(c.path, '/', s.name), s.salary
        FROM staff s JOIN chain c ON s.boss_id = c.id
    )
    SELECT id, name, root, depth, path, salary FROM chain
""").write.mode("overwrite").parquet("chain")
spark.read.parquet("chain").groupBy("root").sum("salary").withColumnRenamed("sum(salary)", "cost").write.json("costs")
spark.sql("""
    WITH RECURSIVE days (day) AS (
        SELECT DATE '2024-01-01' UNION ALL SELECT date_add(day, 1) FROM days WHERE day < DATE '2024-01-05'
    )
    SELECT days.day, COUNT(staff.id) AS hired FROM days LEFT JOIN staff ON staff.hired = days.day GROUP BY days.day
""").write.csv("hired")
spark.stop()
