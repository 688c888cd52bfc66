"""Makes what jdbc_two_databases_one_name reads."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for db in ("one", "two"):
    c = spark._jvm.org.h2.Driver().connect(f"jdbc:h2:file:./{db};USER=sa;PASSWORD=p", None)
    for q in ("CREATE TABLE T (ID INT, V INT)", "INSERT INTO T VALUES (1, 2)"):
        c.createStatement().execute(q)
    c.close()
spark.stop()
