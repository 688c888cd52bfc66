"""Makes Iceberg tables: people, staff and shops, and sales in two days."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.people USING iceberg AS SELECT 1 AS id, 'Ann' AS nm")
spark.sql("CREATE TABLE ice.db.staff USING iceberg AS SELECT 1 AS id, 'Ann' AS nm")
spark.sql("CREATE TABLE ice.db.shops USING iceberg AS SELECT 1 AS id, 'Oslo' AS city")
spark.sql("CREATE TABLE ice.db.sales (id INT, amount INT, day DATE) USING iceberg PARTITIONED BY (day)")
spark.sql("INSERT INTO ice.db.sales VALUES (1, 10, DATE '2026-01-01'), (2, 20, DATE '2026-01-02')")
spark.sql("CREATE NAMESPACE IF NOT EXISTS arc.db")
spark.stop()
