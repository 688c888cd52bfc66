"""Tables that are there before the task: of Spark's own format, and of Hive's."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
for name in ("old_appended", "old_overwritten"):
    spark.range(3).write.saveAsTable(name)
spark.range(3).write.format("hive").saveAsTable("old_hive")
spark.stop()
