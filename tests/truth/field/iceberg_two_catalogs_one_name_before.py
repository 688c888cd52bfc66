"""Makes db.sales in the catalogs north, in one snapshot, and south, in two."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for catalog, rows in (("north", ["(1, 10), (2, 20)"]), ("south", ["(2, 5)", "(3, 30)"])):
    spark.sql(f"CREATE TABLE {catalog}.db.sales (id INT, amount INT) USING iceberg")
    for values in rows:
        spark.sql(f"INSERT INTO {catalog}.db.sales VALUES {values}")
spark.stop()
