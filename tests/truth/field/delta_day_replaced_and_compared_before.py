"""Makes the Delta table stock in versions 0 to 2: two partitions, one of which is a first try."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE stock (sku STRING, qty INT, day STRING) USING delta PARTITIONED BY (day)")
spark.sql("INSERT INTO stock VALUES ('a', 10, '2024-01-01'), ('b', 20, '2024-01-01')")
spark.sql("INSERT INTO stock VALUES ('a', 0, '2024-01-02')")
spark.stop()
