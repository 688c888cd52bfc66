"""Makes the Iceberg tables sales, in two snapshots, and shops, in one, in a catalog of directories."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE files.db.sales (id INT, amount INT, code STRING) USING iceberg")
spark.sql("INSERT INTO files.db.sales VALUES (1, 10, 'x')")
spark.sql("INSERT INTO files.db.sales VALUES (2, 20, 'y')")
spark.sql("CREATE TABLE files.db.shops (id INT, open BOOLEAN) USING iceberg")
spark.sql("INSERT INTO files.db.shops VALUES (1, true), (2, false)")
spark.stop()
