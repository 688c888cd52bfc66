"""Makes the H2 database ``kept``: SALES.ORDERS and SALES.DEPOTS, with a row each."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./kept;USER=sa;PASSWORD=pw-of-kept", None)
statement = connection.createStatement()
for sql in (
    "CREATE SCHEMA SALES",
    "CREATE TABLE SALES.ORDERS (ID INT, COST INT)",
    "INSERT INTO SALES.ORDERS VALUES (1, 10)",
    "CREATE TABLE SALES.DEPOTS (ID INT)",
    "INSERT INTO SALES.DEPOTS VALUES (1)",
):
    statement.execute(sql)
connection.close()
spark.stop()
