"""Makes the H2 database ``bank`` with the tables ACCOUNTS, PAYMENTS and BRANCHES."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./bank;USER=sa;PASSWORD=pw-of-bank", None)
statement = connection.createStatement()
for sql in (
    "CREATE TABLE ACCOUNTS (ID INT, OWNER VARCHAR(20), BALANCE INT)",
    "INSERT INTO ACCOUNTS VALUES (1, 'Ann', 10), (2, 'Bob', 20), (3, 'Cid', -30)",
    "CREATE TABLE PAYMENTS (ID INT, ACCOUNT INT, AMOUNT INT, METHOD VARCHAR(10))",
    "INSERT INTO PAYMENTS VALUES (1, 1, 5, 'card'), (2, 1, 6, 'bank'), (3, 2, 7, 'card')",
    "CREATE TABLE BRANCHES (CODE VARCHAR(5), CITY VARCHAR(20))",
    "INSERT INTO BRANCHES VALUES ('o', 'Oslo'), ('m', 'Moss')",
):
    statement.execute(sql)
connection.close()
spark.stop()
