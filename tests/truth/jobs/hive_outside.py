"""Hive's tables outside of the warehouse: CREATE TABLE … LOCATION … AS SELECT from them, and directories."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
delimited = "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','"
spark.sql(f"""
    CREATE TABLE pages {delimited} STORED AS TEXTFILE LOCATION '{home}/lake/pages'
    AS SELECT page, SUM(seconds) AS total FROM visits GROUP BY page
""")
spark.sql(f"""
    CREATE TABLE cheap STORED AS PARQUET LOCATION '{home}/lake/cheap'
    AS SELECT page, price * 2 AS doubled FROM prices WHERE price < 5
""")
spark.sql("CREATE TABLE inside STORED AS ORC AS SELECT o.owner, v.seconds FROM own o JOIN visits v ON v.page = o.page")
spark.sql("INSERT INTO kept SELECT page, price FROM prices")
spark.sql(f"""
    INSERT OVERWRITE DIRECTORY '{home}/out/delimited' {delimited}
    SELECT page, total FROM pages WHERE total > 1
""")
spark.sql(f"INSERT OVERWRITE DIRECTORY '{home}/out/orc' STORED AS ORC SELECT page, seconds FROM visits")
spark.sql(f"INSERT OVERWRITE LOCAL DIRECTORY '{home}/out/local' STORED AS PARQUET SELECT owner FROM own")
spark.sql(f"INSERT OVERWRITE DIRECTORY '{home}/out/parquet' USING parquet SELECT page, price FROM prices")
spark.sql(f"""
    INSERT OVERWRITE DIRECTORY USING hive OPTIONS (path '{home}/out/hive', fileFormat 'textfile')
    SELECT seconds FROM visits
""")
spark.sql(f"INSERT OVERWRITE DIRECTORY USING hive OPTIONS (path '{home}/out/a, b (c)') SELECT page FROM visits")
spark.sql(f"INSERT OVERWRITE DIRECTORY '{home}/out/bare' USING hive SELECT rate FROM rates")
spark.sql("CREATE TABLE rated STORED AS TEXTFILE AS SELECT page, rate FROM rates")
spark.stop()
