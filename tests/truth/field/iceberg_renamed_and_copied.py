"""Columns that are renamed before they are read, and a day that goes from one Iceberg catalog into another."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("ALTER TABLE ice.db.people RENAME COLUMN nm TO name")
spark.sql("SELECT id, name FROM ice.db.people").write.parquet("people")
spark.sql("INSERT INTO ice.db.staff SELECT 1, 'x' FROM ice.db.people")
spark.sql("ALTER TABLE ice.db.staff RENAME COLUMN nm TO name")
spark.sql("SELECT name FROM ice.db.staff").write.parquet("staff")
spark.sql("SELECT id, city FROM ice.db.shops").write.parquet("shops_before")
spark.sql("ALTER TABLE ice.db.shops RENAME COLUMN city TO town")
spark.sql("SELECT id, town FROM ice.db.shops").write.parquet("shops")
spark.sql("CREATE TABLE arc.db.day USING iceberg AS SELECT id, amount FROM ice.db.sales WHERE day = DATE '2026-01-01'")
spark.sql("SELECT amount FROM arc.db.day").write.parquet("of_day")
spark.sql(
    "CREATE OR REPLACE TABLE arc.db.day_2 USING iceberg AS SELECT id FROM ice.db.sales WHERE day > DATE '2026-01-01'"
)
spark.sql("INSERT INTO arc.db.day_2 SELECT id FROM ice.db.sales WHERE day = DATE '2026-01-01'")
spark.stop()
