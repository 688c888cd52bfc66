"""ALTER of Delta's tables in the session catalog: names, properties, columns; the results are looked at."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
for statement in (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.a (id INT COMMENT 'x, y', price DECIMAL(10,2), d MAP<STRING, INT> NOT NULL) USING delta",
    "ALTER TABLE shop.a RENAME TO shop.b",
    "INSERT INTO shop.b VALUES (1, 2.50, map('k', 3))",
    "CREATE TABLE shop.gone (id INT) USING delta",
    "ALTER TABLE shop.gone RENAME TO shop.away",
    "DROP TABLE shop.away",
    f"CREATE TABLE shop.apart (id INT) USING delta LOCATION '{home}/apart'",
    "ALTER TABLE shop.apart RENAME TO shop.elsewhere",
    "DROP TABLE shop.elsewhere",
    """CREATE TABLE shop.plain (id INT, at STRUCT<x: INT, y: INT>) USING delta
       TBLPROPERTIES ('delta.columnMapping.mode' = 'name')""",
    "ALTER TABLE shop.plain SET TBLPROPERTIES ('team' = 'sales', 'tier' = '1')",
    "ALTER TABLE shop.plain UNSET TBLPROPERTIES ('team', 'tier')",
    "ALTER TABLE shop.plain ALTER COLUMN id COMMENT 'the id, or = 0'",
    "ALTER TABLE shop.plain ADD COLUMNS (at.z INT COMMENT 'height', part STRUCT<a: INT, b: STRING> COMMENT 'x')",
    "ALTER TABLE shop.plain RENAME COLUMN at.x TO lon",
    "ALTER TABLE shop.plain RENAME COLUMN id TO number",
    "ALTER TABLE shop.plain ALTER COLUMN number AFTER at",
    "ALTER TABLE shop.plain DROP COLUMN at.y",
    "ALTER TABLE shop.plain DROP COLUMN IF EXISTS part",
    "ALTER TABLE shop.plain DROP COLUMN IF EXISTS missing",
    "ALTER TABLE shop.plain UNSET TBLPROPERTIES IF EXISTS ('team')",
):
    try:
        spark.sql(statement).collect()
    except Exception as error:
        print("FAILED", statement, str(error)[:200])
spark.stop()
