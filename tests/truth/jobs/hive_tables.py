"""Tables of Hive: INSERT OVERWRITE, an external table over files, an insert into two; some were there before."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE TABLE IF NOT EXISTS shop.customers (customer_id INT, name STRING) STORED AS ORC")
spark.sql(f"""
    CREATE EXTERNAL TABLE visits (customer_id INT, page STRING)
    ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE LOCATION '{home}/visits'
""")
spark.sql("CREATE TABLE shop.totals (name STRING, visits BIGINT) STORED AS PARQUET")
spark.sql("""
    INSERT OVERWRITE TABLE shop.totals
    SELECT c.name, COUNT(v.page) FROM shop.customers c JOIN visits v ON v.customer_id = c.customer_id GROUP BY c.name
""")
spark.sql("CREATE TABLE shop.small (order_id INT) STORED AS TEXTFILE")
spark.sql("CREATE TABLE shop.large (amount INT) STORED AS ORC")
spark.sql("""
    FROM shop.orders
    INSERT INTO TABLE shop.small SELECT order_id WHERE amount < 50
    INSERT INTO TABLE shop.large SELECT amount WHERE customer_id > 0
""")
spark.stop()
