"""Appends to a table of a database's catalog, and reads it: what was there before is read with it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("new.csv", header=True, schema="ID INT, COST INT").createOrReplaceTempView("new")
spark.sql("INSERT INTO h2.SALES.ORDERS SELECT ID, COST FROM new")
spark.sql("SELECT ID, COST FROM h2.SALES.ORDERS").write.parquet("all_orders")
spark.sql("SELECT ID FROM new").writeTo("h2.SALES.DEPOTS").append()
spark.sql("SELECT SUM(ID) AS ids FROM h2.SALES.DEPOTS").write.parquet("depots")
spark.sql("CREATE TABLE h2.SALES.MADE AS SELECT ID, COST FROM new WHERE COST > 1")
spark.sql("INSERT INTO h2.SALES.MADE SELECT ID, 0 FROM new")
spark.sql("SELECT COST FROM h2.SALES.MADE").write.parquet("made")
spark.sql("CREATE TABLE h2.SALES.BARE (ID INT)")
spark.sql("INSERT INTO h2.SALES.BARE SELECT ID FROM new")
spark.sql("SELECT ID FROM h2.SALES.BARE").write.parquet("bare")
spark.stop()
