"""Where dropped tables were, and commands with IF [NOT] EXISTS of what the program itself made; errors are ignored."""

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
for statement in (
    "DROP TABLE old.apart",
    "DROP TABLE old.plain",
    "CREATE DATABASE shop",
    "CREATE TABLE shop.failed USING parquet AS SELECT raise_error('no') AS id",
    "CREATE TABLE shop.made USING parquet AS SELECT 1 AS id",
    f"CREATE TABLE shop.placed (id INT) USING parquet LOCATION '{home}/a place'",
    "DROP DATABASE shop CASCADE",
    f"CREATE TABLE apart (id INT) USING parquet LOCATION '{home}/far apart'",
    "DROP TABLE apart",
    f"CREATE TABLE filled (id INT) USING parquet LOCATION '{home}/filled'",
    "INSERT INTO filled VALUES (1)",
    "DROP TABLE filled",
    "CREATE TABLE moved (id INT) USING parquet",
    f"ALTER TABLE moved SET LOCATION '{home}/moved'",
    "DROP TABLE moved",
    "CREATE TABLE moved (id INT) USING parquet",
    f"ALTER TABLE moved SET LOCATION '{home}/again'",
    "DROP TABLE moved",
    "CREATE TABLE days (id INT, day STRING) USING parquet PARTITIONED BY (day)",
    "ALTER TABLE days ALTER COLUMN id COMMENT 'the id, or = 0'",
    "ALTER TABLE days ADD COLUMNS (at STRUCT<x: INT, y: ARRAY<STRUCT<z: STRING>>> COMMENT 'a place, (x)')",
    "ALTER TABLE days ADD PARTITION (day = 'd1')",
    "ALTER TABLE days ADD IF NOT EXISTS PARTITION (day = 'd1')",
    "ALTER TABLE days DROP IF EXISTS PARTITION (day = 'd2')",
    "ALTER TABLE days DROP PARTITION (day = 'd1')",
    "ALTER TABLE days UNSET TBLPROPERTIES IF EXISTS ('team')",
    "CREATE TABLE copied LIKE days",
    "CREATE TABLE IF NOT EXISTS copied LIKE days",
    "CREATE DATABASE passing",
    "DROP SCHEMA IF EXISTS passing CASCADE",
    "DROP SCHEMA IF EXISTS passing CASCADE",
):
    try:
        spark.sql(statement).collect()
    except PySparkException as error:
        print("FAILED", statement, str(error)[:200])
spark.stop()
