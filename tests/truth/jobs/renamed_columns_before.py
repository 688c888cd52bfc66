"""A Delta table ``old`` with column mapping, in the metastore."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
spark.sql(f"CREATE TABLE old (id INT, value INT) USING delta {mapping}")
spark.sql("INSERT INTO old VALUES (9, 90)")
spark.stop()
