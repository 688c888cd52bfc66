"""One table name in two databases of an Iceberg catalog that is the default one, and in Spark's own catalog."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("INSERT INTO archive.sales SELECT id, amount FROM shop.sales WHERE amount < 15")
spark.sql("USE shop")
spark.sql("CREATE TABLE totals USING iceberg AS SELECT count(id) AS sales, sum(amount) AS amount FROM sales")
spark.sql("USE spark_catalog.default")
spark.sql("INSERT INTO sales SELECT a.id, s.amount FROM ice.archive.sales a JOIN ice.shop.sales s ON s.id = a.id")
spark.sql("SELECT id, amount FROM sales").write.parquet("sales_of_spark")
spark.stop()
