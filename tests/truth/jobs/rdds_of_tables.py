"""Rows of tables go through RDDs: of the catalog, of a database, of a frame that was shown before; two lie beside."""

from pyspark.sql import SparkSession

SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
orders, returns = spark.table("orders"), spark.table("returns")
returns.write.parquet("out/returns")
spark.createDataFrame(orders.where("id > 1").rdd, "id int, amount int").write.parquet("out/orders")
orders.rdd.map(str).saveAsTextFile("out/lines")

customers = spark.read.jdbc("jdbc:h2:file:./shop", "PUBLIC.CUSTOMERS", properties=SHOP)
spark.createDataFrame(customers.rdd.map(lambda row: (row.NAME,)), "name string").write.parquet("out/customers")

north = spark.read.csv("in/north.csv", schema="id int")
south = spark.read.csv("in/south.csv", schema="id int")
south.write.parquet("out/south")
north.show()
north.rdd.map(str).saveAsTextFile("out/north")
spark.stop()
