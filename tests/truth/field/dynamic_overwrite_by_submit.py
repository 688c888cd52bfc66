"""Only the partitions that the data has are overwritten, as the options of spark-submit say; then all is read."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
s = spark.read.csv("src.csv", header=True, schema="id BIGINT, v BIGINT, k STRING")
s.createOrReplaceTempView("s")

s.write.mode("overwrite").partitionBy("k").parquet("o")
spark.sql("INSERT OVERWRITE t SELECT id, v, k FROM s")
spark.sql("INSERT OVERWRITE t SELECT v, id, concat(k, 'y') AS k FROM s")
spark.read.parquet("o").createOrReplaceTempView("o")
spark.sql("SELECT a.m, b.n FROM (SELECT max(v) AS m FROM o) a, (SELECT max(id) AS n FROM t) b").write.mode(
    "overwrite"
).parquet("r")
spark.stop()
