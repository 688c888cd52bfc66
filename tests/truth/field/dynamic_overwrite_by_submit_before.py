"""Makes what dynamic_overwrite_by_submit reads."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE t (id INT, v INT, k STRING) USING parquet PARTITIONED BY (k)")
spark.sql("INSERT INTO t VALUES (1, 2, 'old')")
spark.stop()
