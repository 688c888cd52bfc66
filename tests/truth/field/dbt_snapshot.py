"""A snapshot of dbt: changed rows close their old version and open a new one, in one MERGE from a staged union."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("""
    CREATE OR REPLACE TEMPORARY VIEW customers_snapshot__dbt_tmp AS
    WITH snapshot_query AS (SELECT id, city, updated_at FROM raw.customers),
    snapshotted AS (SELECT * FROM snapshots.customers WHERE dbt_valid_to IS NULL),
    source_data AS (
        SELECT id, city, updated_at, md5(concat(CAST(id AS STRING), '|', CAST(updated_at AS STRING))) AS dbt_scd_id,
               updated_at AS dbt_valid_from
        FROM snapshot_query
    ),
    insertions AS (
        SELECT 'insert' AS dbt_change_type, s.id, s.city, s.updated_at, s.dbt_scd_id, s.dbt_valid_from,
               CAST(NULL AS TIMESTAMP) AS dbt_valid_to
        FROM source_data s LEFT JOIN snapshotted t ON t.id = s.id
        WHERE t.id IS NULL OR t.dbt_valid_from < s.updated_at
    ),
    updates AS (
        SELECT 'update' AS dbt_change_type, s.id, s.city, s.updated_at, t.dbt_scd_id, s.dbt_valid_from,
               s.updated_at AS dbt_valid_to
        FROM source_data s JOIN snapshotted t ON t.id = s.id
        WHERE t.dbt_valid_from < s.updated_at
    )
    SELECT * FROM insertions UNION ALL SELECT * FROM updates
""")
spark.sql("""
    MERGE INTO snapshots.customers AS d USING customers_snapshot__dbt_tmp AS s ON s.dbt_scd_id = d.dbt_scd_id
    WHEN MATCHED AND d.dbt_valid_to IS NULL AND s.dbt_change_type = 'update' THEN
        UPDATE SET dbt_valid_to = s.dbt_valid_to
    WHEN NOT MATCHED AND s.dbt_change_type = 'insert' THEN
        INSERT (id, city, updated_at, dbt_scd_id, dbt_valid_from, dbt_valid_to)
        VALUES (s.id, s.city, s.updated_at, s.dbt_scd_id, s.dbt_valid_from, s.dbt_valid_to)
""")
spark.stop()
