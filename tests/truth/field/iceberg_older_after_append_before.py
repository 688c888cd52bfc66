"""Makes the Iceberg table stock in three snapshots, the first of which has a tag."""

from time import sleep

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE ice.db.stock (sku STRING, qty INT) USING iceberg")
for row in ("('a', 1)", "('b', 2)", "('c', 3)"):
    # Commits that a time tells apart.
    sleep(1.1)
    spark.sql(f"INSERT INTO ice.db.stock VALUES {row}")
    if row.startswith("('a'"):
        spark.sql("ALTER TABLE ice.db.stock CREATE TAG opening")
spark.stop()
