"""Only looks: count, collect, an aggregate, toPandas and show; nothing is left behind."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True).where("status = 'open'").count()
spark.read.parquet("customers").collect()
spark.read.json("events.json", schema="id INT, kind STRING").createOrReplaceTempView("events")
spark.sql("SELECT MAX(id) AS newest FROM events").collect()
spark.read.parquet("prices").where("price > 1").toPandas()
spark.read.csv("stores.csv", header=True).show()
spark.stop()
