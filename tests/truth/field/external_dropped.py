"""Two names for one place: one of them writes, and is dropped; another external table is filled, and dropped too."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, shop STRING").createOrReplaceTempView("orders")
for name in ("shared_new", "shared_old"):
    spark.sql(f"CREATE TABLE {name} (id INT, amount INT) USING parquet LOCATION '{home}/lake/shared'")
spark.sql("INSERT INTO shared_new SELECT id, amount FROM orders WHERE shop = 'north'")
spark.sql("DROP TABLE shared_new")

spark.sql(f"CREATE TABLE export (id INT, shop STRING) USING json LOCATION '{home}/lake/export'")
spark.sql("INSERT INTO export SELECT id, shop FROM orders")
spark.sql("DROP TABLE export")

spark.sql("CREATE TABLE managed USING parquet AS SELECT shop, max(amount) AS most FROM orders GROUP BY shop")
spark.table("managed").select("most").write.parquet("most")
spark.sql("DROP TABLE managed")
spark.sql("REFRESH TABLE shared_old")
spark.sql("SELECT sum(amount) AS total FROM shared_old").write.parquet("total")
spark.stop()
