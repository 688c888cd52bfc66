"""Makes the Iceberg table devices, of which rows are updated and deleted by delete files."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    CREATE TABLE ice.db.devices (id INT, name STRING, status STRING, note STRING, last_seen DATE) USING iceberg
    TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read',
                   'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')
""")
spark.sql("""
    INSERT INTO ice.db.devices
    SELECT /*+ COALESCE(1) */ *
    FROM VALUES (1, 'lamp', 'on', '', DATE '2024-01-01'),
                (2, 'door', 'on', '', DATE '2023-01-01'),
                (3, 'oven', 'off', '', DATE '2024-01-02'),
                (4, 'bell', 'on', '', DATE '2024-01-03')
""")
spark.stop()
