"""One table under names of different case, and columns too."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("Orders")
spark.sql("CREATE TABLE Sales (Id INT, Amount INT) USING parquet")
spark.sql("INSERT INTO SALES SELECT ORDER_ID, aMOUNT FROM ORDERS")
spark.sql("SELECT SUM(AMOUNT) AS Total FROM sales").write.parquet("Totals")
spark.sql("ALTER TABLE sAles RENAME TO Sold")
spark.stop()
