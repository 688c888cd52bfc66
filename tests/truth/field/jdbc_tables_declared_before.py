"""Makes the H2 database ``shop``: ORDERS, CUSTOMERS, TOTALS, UNUSED."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./shop;USER=sa;PASSWORD=pw-of-shop", None)
statement = connection.createStatement()
for sql in (
    "CREATE TABLE ORDERS (ID INT, CUSTOMER INT, AMOUNT INT)",
    "INSERT INTO ORDERS VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)",
    "CREATE TABLE CUSTOMERS (ID INT, NAME VARCHAR(20))",
    "INSERT INTO CUSTOMERS VALUES (1, 'Ann'), (2, 'Bob')",
    "CREATE TABLE TOTALS (ID INT, TOTAL BIGINT)",
    "INSERT INTO TOTALS VALUES (0, 0)",
    "CREATE TABLE UNUSED (ID INT)",
):
    statement.execute(sql)
connection.close()
spark.stop()
