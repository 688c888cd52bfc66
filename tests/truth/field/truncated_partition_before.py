"""Makes the table that is added to."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE TABLE old (id INT, day STRING) USING parquet PARTITIONED BY (day)")
spark.sql("INSERT INTO old VALUES (9, 'd0'), (8, 'd9')")
spark.stop()
