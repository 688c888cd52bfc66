"""The scenario hive of OpenLineage's compatibility-tests: a table of literal rows, and another one from it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("simple test").enableHiveSupport().getOrCreate()

spark.sql("DROP TABLE IF EXISTS t1;")
spark.sql("DROP TABLE IF EXISTS t2;")

spark.sql("CREATE TABLE IF NOT EXISTS t1 (a INT, b STRING);")
spark.sql("INSERT INTO t1 VALUES (1,2),(3,4);")
spark.sql("CREATE TABLE IF NOT EXISTS t2 AS SELECT * FROM t1;")

spark.sql("SELECT * FROM t2;").show()
spark.stop()
