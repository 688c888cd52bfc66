"""Makes the H2 database ``depot``: COSTS with four rows, and a table whose name and columns are no words."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
connection = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./depot;USER=sa;PASSWORD=pw-of-depot", None)
statement = connection.createStatement()
for sql in (
    "CREATE TABLE COSTS (ID INT, DEPOT VARCHAR(20), COST INT, KIND VARCHAR(20), YEAR_ INT)",
    "INSERT INTO COSTS VALUES (1, 'north', 10, 'rent', 2023), (2, 'north', 20, 'tax', 2024)",
    "INSERT INTO COSTS VALUES (3, 'south', 30, 'rent', 2024), (4, 'a, b', 40, 'tax', 2024)",
    'CREATE TABLE "Plan 1" ("Amount, EUR" INT, "No #12, old" INT, "cost AS planned" VARCHAR(20), "max(x)" INT)',
    """INSERT INTO "Plan 1" VALUES (1, 2, 'a', 4), (5, 6, 'b', 8)""",
):
    statement.execute(sql)
connection.close()
spark.stop()
