"""Delta answers count, min and max from its log, without a scan: for reports, a join and a filter; local data too."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

work = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
customers, events, sales, limits = (f"delta.`{work}/{name}`" for name in ("customers", "events", "sales", "limits"))
spark.sql(f"SELECT count(*) AS n FROM {customers}").write.parquet("counted")
spark.sql(f"SELECT min(value), max(value), count(*) FROM {events}").write.json("named")
newest = spark.read.format("delta").load("limits").agg(f.max("id").alias("newest"))
newest.crossJoin(spark.read.parquet("plans")).write.parquet("joined")
spark.sql(f"SELECT min(value) AS lo, max(value) AS hi, count(*) AS n FROM {events}").write.parquet("ranges")
newer = f"SELECT id, plan FROM parquet.`{work}/plans` WHERE id > (SELECT max(id) FROM {limits})"
spark.sql(newer).write.parquet("fresh")
spark.sql(f"SELECT max(shop) AS last FROM {sales}").write.parquet("shops")
# Rows of the program's own, whose columns are called alike.
spark.createDataFrame([(1, 2)], "`min(value)` INT, n INT").write.json("own")
spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(`max(id)`, name)").write.json("values")
oslo = spark.read.format("delta").load("customers").where("city = 'Oslo'").select("id")
oslo.join(spark.sql("SELECT * FROM VALUES (1, 'x') AS t(id, kind)"), "id").write.parquet("oslo")
spark.stop()
