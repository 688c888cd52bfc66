"""Makes the Delta tables stock, in versions 0 to 4, and prices, in versions 0 and 1."""

from time import sleep

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE stock (sku STRING, qty INT) USING delta")
for row in ("('a', 1)", "('b', 2)", "('a', 3)", "('c', 4)"):
    # Commits that a time tells apart.
    sleep(1.1)
    spark.sql(f"INSERT INTO stock VALUES {row}")
spark.sql("CREATE TABLE prices (sku STRING, cents INT) USING delta")
spark.sql("INSERT INTO prices VALUES ('a', 10), ('b', 20)")
spark.stop()
