"""Makes what partitions_from_metadata reads."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE t (id INT, day STRING) USING parquet PARTITIONED BY (day)")
spark.sql("INSERT INTO t VALUES (1, '1'), (2, '2')")
spark.stop()
