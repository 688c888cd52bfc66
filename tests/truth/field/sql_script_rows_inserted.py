"""A script in SQL goes through the rows of a query, and inserts each into a table."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, cust INT, amount INT, day STRING, note STRING")
orders.createOrReplaceTempView("orders")
spark.sql("CREATE TABLE log (id INT, what STRING) USING parquet")
spark.sql("""BEGIN
  FOR row AS SELECT id, note FROM orders WHERE amount > 10 DO
    INSERT INTO log VALUES (row.id, row.note);
  END FOR;
END""")
spark.stop()
