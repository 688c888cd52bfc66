"""Saves tables that are there, and tables that are not; makes a table of files, views, and a database with a place."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
rows = spark.range(5)
rows.write.mode("append").saveAsTable("old_appended")
rows.write.mode("append").format("hive").saveAsTable("old_hive")
rows.write.mode("overwrite").saveAsTable("old_overwritten")
rows.write.mode("append").saveAsTable("new_appended")
rows.write.mode("append").format("hive").saveAsTable("new_hive")
rows.write.mode("append").option("path", f"{home}/placed").saveAsTable("new_placed")
rows.write.mode("append").option("path", f"{home}/placed").saveAsTable("new_placed")
rows.write.saveAsTable("new_saved")
for statement in (
    f"CREATE TABLE of_files (id BIGINT COMMENT 'key') USING parquet LOCATION '{home}/placed'",
    "CREATE VIEW named (key COMMENT 'a=b') COMMENT 'one' TBLPROPERTIES ('team' = 'sales') AS SELECT 1 AS id",
    f"CREATE DATABASE placed_db LOCATION '{home}/elsewhere'",
    "CREATE TABLE placed_db.empty (id INT) USING parquet",
    "CREATE TABLE placed_db.filled (id INT) USING parquet",
    "INSERT INTO placed_db.filled VALUES (1)",
    "ALTER DATABASE placed_db SET DBPROPERTIES ('team' = 'sales', 'tier' = '1')",
    "ALTER DATABASE placed_db UNSET DBPROPERTIES ('team', 'tier')",
    "DROP DATABASE placed_db CASCADE",
):
    spark.sql(statement).collect()
spark.stop()
