"""Makes what jdbc_offset_and_sums reads."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
c = spark._jvm.org.h2.Driver().connect("jdbc:h2:file:./shop;USER=sa;PASSWORD=pw-of-shop", None)
st = c.createStatement()
for q in (
    "CREATE SCHEMA SALES",
    'CREATE TABLE SALES.ORDERS (ID INT, DEPOT VARCHAR(9), "A B" INT)',
    "INSERT INTO SALES.ORDERS VALUES (1,'n',2),(2,'s',3),(3,'n',4)",
):
    st.execute(q)
c.close()
spark.stop()
