"""An external table of Hive, with partitions of another tool, is declared over its directory, and one is read."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql(f"""
    CREATE EXTERNAL TABLE visits (page STRING, seconds INT) PARTITIONED BY (day INT)
    ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' LOCATION '{home}/drop/log'
""")
spark.sql("ALTER TABLE visits RECOVER PARTITIONS")
spark.sql("CREATE TABLE first_day USING parquet AS SELECT upper(page) AS page, seconds FROM visits WHERE day = 1")
spark.table("visits").where("day > 1 AND seconds > 5").select("page").write.parquet("late")
spark.stop()
