"""Rows of Parquet and of tables of a database go through RDDs; other tables beside them are read as usual."""

from pyspark.sql import SparkSession

URL = "jdbc:h2:file:./shop"
shop = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
ratings = spark.read.parquet("tables/ratings")
others = spark.read.parquet("tables/others")
others.write.parquet("copy")
rated = ratings.rdd.map(lambda row: (row.person, row.stars * 2))
spark.createDataFrame(rated, "person BIGINT, stars BIGINT").write.parquet("rated")
orders = spark.read.jdbc(URL, "PUBLIC.ORDERS", properties=shop)
customers = spark.read.jdbc(URL, "PUBLIC.CUSTOMERS", properties=shop)
print(customers.count(), "customers")
kept = orders.rdd.filter(lambda row: row.AMOUNT > 10).map(lambda row: (row.ID, row.AMOUNT))
spark.createDataFrame(kept, "id INT, amount INT").write.parquet("exported")
customers.rdd.map(lambda row: row.NAME).coalesce(1).saveAsTextFile("names")
spark.stop()
