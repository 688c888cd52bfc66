"""A Hive metastore: tables ``visits``, ``prices``, ``rates`` and ``kept`` outside of the warehouse, ``own`` in it."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
delimited = "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','"
spark.sql(f"CREATE EXTERNAL TABLE visits (page STRING, seconds INT) {delimited} LOCATION '{home}/lake/visits'")
spark.sql(f"CREATE EXTERNAL TABLE prices (page STRING, price INT) STORED AS ORC LOCATION '{home}/lake/prices'")
spark.sql(f"CREATE EXTERNAL TABLE kept (page STRING, price INT) {delimited} LOCATION '{home}/lake/kept'")
spark.sql(f"CREATE EXTERNAL TABLE rates (page STRING, rate INT) STORED AS ORC LOCATION '{home}/zone/rates'")
spark.sql(f"CREATE TABLE own (page STRING, owner STRING) {delimited}")
spark.sql("INSERT INTO visits VALUES ('home', 10), ('cart', 20)")
spark.sql("INSERT INTO prices VALUES ('home', 1), ('cart', 2)")
spark.sql("INSERT INTO rates VALUES ('home', 3)")
spark.sql("INSERT INTO kept VALUES ('home', 1)")
spark.sql("INSERT INTO own VALUES ('home', 'Ann')")
spark.stop()
