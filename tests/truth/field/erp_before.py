"""Makes the H2 database ``erp``: SALES.ORDERS, SALES."line_items" (in lower case), SALES.TOTALS, HR.STAFF."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./erp;USER=sa;PASSWORD=pw-of-erp", None)
statement = connection.createStatement()
for sql in (
    "CREATE SCHEMA SALES",
    "CREATE SCHEMA HR",
    "CREATE TABLE SALES.ORDERS (ID INT, SELLER INT, STATE VARCHAR(10))",
    "INSERT INTO SALES.ORDERS VALUES (1, 7, 'paid'), (2, 7, 'open'), (3, 8, 'paid')",
    'CREATE TABLE SALES."line_items" ("order_id" INT, "sku" VARCHAR(10), "price" INT)',
    """INSERT INTO SALES."line_items" VALUES (1, 'a', 10), (1, 'b', 20), (3, 'a', 10)""",
    "CREATE TABLE SALES.TOTALS (SELLER VARCHAR(20), TOTAL BIGINT)",
    "INSERT INTO SALES.TOTALS VALUES ('old', 0)",
    "CREATE TABLE HR.STAFF (ID INT, NAME VARCHAR(20), WAGE INT)",
    "INSERT INTO HR.STAFF VALUES (7, 'Ann', 100), (8, 'Bob', 200)",
):
    statement.execute(sql)
connection.close()
spark.stop()
