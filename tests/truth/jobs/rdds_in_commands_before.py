"""Makes the H2 database ``shop`` with the table NAMES."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./shop;USER=sa;PASSWORD=pw-of-shop", None)
connection.createStatement().execute("CREATE TABLE NAMES (NAME VARCHAR(20))")
connection.close()
spark.stop()
