"""Makes the H2 database ``sales``: orders, items (with a blank in their name), customers, and former ones."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./sales;USER=sa;PASSWORD=pw-of-sales", None)
statement = connection.createStatement()
for sql in (
    "CREATE SCHEMA CRM",
    "CREATE TABLE ORDERS (ID INT, CUSTOMER_ID INT, STATE VARCHAR(10), PLACED DATE)",
    "INSERT INTO ORDERS VALUES (1, 1, 'paid', '2024-01-01'), (2, 2, 'paid', '2024-01-02')",
    "INSERT INTO ORDERS VALUES (3, 1, 'open', '2024-01-03')",
    'CREATE TABLE "Order Items" (ORDER_ID INT, "sku EUR" VARCHAR(10), PRICE INT, AMOUNT INT, "from" VARCHAR(10))',
    "INSERT INTO \"Order Items\" VALUES (1, 'a', 5, 2, 'x'), (1, 'b', 3, 1, 'y')",
    "INSERT INTO \"Order Items\" VALUES (2, 'a', 5, 1, 'x'), (3, 'c', 9, 9, 'z')",
    "CREATE TABLE CRM.CUSTOMERS (ID INT, NAME VARCHAR(20), NICK VARCHAR(20), CITY VARCHAR(20), VIP BOOLEAN)",
    "INSERT INTO CRM.CUSTOMERS VALUES (1, 'Ann', NULL, 'Oslo', TRUE), (2, 'Bob', 'B', 'Moss', FALSE)",
    "CREATE TABLE CRM.FORMER (ID INT, NAME VARCHAR(20), LEFT_AT DATE)",
    "INSERT INTO CRM.FORMER VALUES (7, 'Cid', '2020-01-01')",
    "CREATE TABLE TOTALS (NAME VARCHAR(20), TOTAL BIGINT)",
):
    statement.execute(sql)
connection.close()
spark.stop()
