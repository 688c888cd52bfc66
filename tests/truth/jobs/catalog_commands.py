"""What commands change of tables beside columns and rows: properties, partitions, places; the results are looked at."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
for statement in (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT, price DECIMAL(10,2), day STRING) USING parquet PARTITIONED BY (day)",
    "ALTER TABLE shop.orders SET TBLPROPERTIES ('team' = 'sales', 'tier' = '1')",
    "ALTER TABLE shop.orders UNSET TBLPROPERTIES IF EXISTS ('team', 'tier')",
    "ALTER TABLE shop.orders ADD COLUMNS (tax DECIMAL(10,2))",
    "INSERT INTO shop.orders PARTITION (day = 'd0') VALUES (1, 2.50, 0.50)",
    f"ALTER TABLE shop.orders ADD PARTITION (day = 'd1') PARTITION (day = 'd2') LOCATION '{home}/late'",
    "ALTER TABLE shop.orders DROP PARTITION (day = 'd1'), PARTITION (day = 'd2')",
    "ALTER TABLE shop.orders PARTITION (day = 'd0') RENAME TO PARTITION (day = 'd9')",
    f"ALTER TABLE shop.orders PARTITION (day = 'd9') SET LOCATION '{home}/nine'",
    "MSCK REPAIR TABLE shop.orders",
    "MSCK REPAIR TABLE shop.orders SYNC PARTITIONS",
    "COMMENT ON TABLE shop.orders IS 'one row an order'",
    "CREATE TABLE shop.plain (id INT, name STRING) USING csv",
    f"ALTER TABLE shop.plain SET LOCATION '{home}/elsewhere'",
    """CREATE TABLE shop.loaded (id INT, name STRING) PARTITIONED BY (day STRING)
       ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE""",
    f"LOAD DATA LOCAL INPATH '{home}/more.csv' OVERWRITE INTO TABLE shop.loaded PARTITION (day = 'd1')",
    "CREATE VIEW shop.ids TBLPROPERTIES ('team' = 'sales') AS SELECT 1 AS id",
    "ALTER VIEW shop.ids UNSET TBLPROPERTIES ('team')",
    "DROP TABLE IF EXISTS shop.missing",
    "DROP TABLE IF EXISTS missing",
    "DROP TABLE shop.plain",
):
    spark.sql(statement).collect()
spark.stop()
