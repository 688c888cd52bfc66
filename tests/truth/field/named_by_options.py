"""A day's sales, with options of the listener that take days and releases out of paths and give a database its name."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sales = spark.read.parquet("raw/20240102/sales")
sales.where("qty > 0").select("sku", "qty").write.parquet("clean/20240102/sales")
spark.read.parquet("clean/20240102/sales").groupBy("sku").sum("qty").toDF("sku", "pieces").write.parquet("sums/v3")
spark.read.parquet("clean/20240101/sales").selectExpr("sku", "qty AS former").write.parquet("former")
spark.read.parquet("clean/20240102/sales").selectExpr("qty AS today").write.parquet("today")
spark.sql("CREATE TABLE kept (sku STRING, qty INT) USING parquet LOCATION 'tables/v1/kept'")
sales.select("sku", "qty").write.insertInto("kept")
spark.table("kept").groupBy("sku").count().toDF("sku", "times").write.json("times")
sales.selectExpr("qty AS ID").writeTo("h2.SALES.DEPOTS").append()
spark.table("h2.SALES.ORDERS").selectExpr("COST AS cost").write.parquet("costs")
spark.sparkContext.textFile("lines/20240101/a").saveAsTextFile("copied/v1/lines")
spark.stop()
