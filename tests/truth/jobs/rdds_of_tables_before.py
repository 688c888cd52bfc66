"""Makes the H2 database ``shop`` with CUSTOMERS, and the tables ``orders`` and ``returns``."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./shop;USER=sa;PASSWORD=pw-of-shop", None)
for sql in (
    "CREATE TABLE CUSTOMERS (ID INT, NAME VARCHAR(20))",
    "INSERT INTO CUSTOMERS VALUES (1, 'Ann'), (2, 'Bob')",
):
    connection.createStatement().execute(sql)
connection.close()
spark.createDataFrame([(1, 10), (2, 20)], "id int, amount int").write.saveAsTable("orders")
spark.createDataFrame([(1, 5)], "id int, amount int").write.saveAsTable("returns")
spark.stop()
