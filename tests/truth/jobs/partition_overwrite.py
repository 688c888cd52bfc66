"""Fills two partitions of a table, then overwrites one of them, statically and dynamically."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("first", "second", "again", "fresh"):
    spark.read.csv(f"{name}.csv", header=True, schema="id INT, amount INT, day STRING").createOrReplaceTempView(name)
spark.sql("CREATE TABLE sales (id INT, amount INT, day STRING) USING parquet PARTITIONED BY (day)")
spark.sql("INSERT INTO sales PARTITION (day = '2026-01-01') SELECT id, amount FROM first")
spark.sql("INSERT INTO sales PARTITION (day = '2026-01-02') SELECT id, amount FROM second")
spark.sql("INSERT OVERWRITE sales PARTITION (day = '2026-01-02') SELECT id, amount FROM again")
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
spark.sql("INSERT OVERWRITE TABLE sales PARTITION (day) SELECT id, amount, day FROM fresh")
spark.stop()
