"""Parquet files and a Parquet table become Iceberg's: by add_files and by snapshot; a report reads both tables."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.orders (id BIGINT, amount BIGINT) USING iceberg")
spark.sql(f"CALL ice.system.add_files(table => 'db.orders', source_table => '`parquet`.`{home}/landing`')")
spark.sql("CALL ice.system.snapshot(source_table => 'spark_catalog.default.shops', table => 'ice.db.shops')")
spark.sql("""
    SELECT s.name, o.amount FROM ice.db.orders o JOIN ice.db.shops s ON s.id = o.id
""").write.parquet("report")
spark.stop()
