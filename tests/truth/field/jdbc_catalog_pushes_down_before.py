"""Makes the H2 database ``pushed``: SALES.ORDERS and SALES.DEPOTS."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./pushed;USER=sa;PASSWORD=pw-of-pushed", None)
statement = connection.createStatement()
for sql in (
    "CREATE SCHEMA SALES",
    "CREATE TABLE SALES.ORDERS (ID INT, DEPOT INT, COST INT, STATE VARCHAR(10))",
    "INSERT INTO SALES.ORDERS VALUES (1, 1, 10, 'paid'), (2, 1, 20, 'paid'), (3, 2, 30, 'paid'), (4, 2, 40, 'open')",
    "CREATE TABLE SALES.DEPOTS (ID INT, NAME VARCHAR(10))",
    "INSERT INTO SALES.DEPOTS VALUES (1, 'Oslo')",
):
    statement.execute(sql)
connection.close()
spark.stop()
