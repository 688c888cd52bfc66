"""The database aggregates by its own SQL; another read is cut into ranges and renames a column; both become Parquet."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
shop = {"url": "jdbc:h2:file:./shop", "user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
sums = "SELECT CUSTOMER AS WHO, SUM(AMOUNT) AS TOTAL FROM ORDERS WHERE ID > 1 GROUP BY CUSTOMER"
spark.read.format("jdbc").options(**shop, query=sums).load().write.parquet("sums")
ranges = {"dbtable": "CUSTOMERS", "partitionColumn": "ID", "lowerBound": 1, "upperBound": 3, "numPartitions": 2}
customers = spark.read.format("jdbc").options(**shop, **ranges).load()
customers.withColumnRenamed("NAME", "who").write.parquet("customers")
spark.stop()
