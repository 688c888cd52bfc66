"""Rows of Iceberg tables go through RDDs into a data frame and into text."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.table("ice.db.blocked").writeTo("ice.db.copied").create()
customers = spark.table("ice.db.customers").where("visits > 0")
spark.createDataFrame(customers.rdd.map(lambda row: (row.name,)), "name string").writeTo("ice.db.names").create()
spark.table("ice.db.limits").rdd.map(str).saveAsTextFile("limits")
spark.stop()
