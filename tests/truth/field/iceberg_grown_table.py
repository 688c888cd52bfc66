"""An Iceberg table with hidden partitions grows: a column is added, one renamed; then maintenance and a report."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("first.csv", header=True, schema="at TIMESTAMP, host STRING, value DOUBLE").createOrReplaceTempView(
    "first"
)
spark.read.csv(
    "second.csv", header=True, schema="at TIMESTAMP, node STRING, measured DOUBLE, unit STRING"
).createOrReplaceTempView("second")
spark.sql("""
    CREATE TABLE ice.db.metrics (at TIMESTAMP, host STRING, value DOUBLE) USING iceberg
    PARTITIONED BY (days(at), bucket(4, host))
""")
spark.sql("INSERT INTO ice.db.metrics SELECT at, host, value FROM first WHERE at IS NOT NULL AND host <> 'test'")
spark.sql("ALTER TABLE ice.db.metrics ADD COLUMN unit STRING")
spark.sql("ALTER TABLE ice.db.metrics RENAME COLUMN value TO reading")
spark.sql("ALTER TABLE ice.db.metrics REPLACE PARTITION FIELD at_day WITH hours(at)")
spark.sql("""
    INSERT INTO ice.db.metrics
    SELECT at, node, measured * 1000, unit FROM second WHERE at > TIMESTAMP '2024-01-01 00:00:00' AND node <> 'test'
""")
spark.sql("CALL ice.system.rewrite_data_files(table => 'db.metrics', options => map('rewrite-all', 'true'))")
spark.sql("CALL ice.system.expire_snapshots(table => 'db.metrics', older_than => TIMESTAMP '2024-01-01 00:00:00')")
print(spark.sql("SELECT count(*) FROM ice.db.metrics.files").first()[0], "files")
spark.sql("SELECT host, max(reading) AS peak FROM ice.db.metrics GROUP BY host").write.parquet("peaks")
spark.stop()
