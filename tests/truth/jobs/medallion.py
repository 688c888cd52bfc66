"""CSV to silver to gold: a cast, a join, an aggregate; gold reads what silver was written to."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
customers = spark.read.csv("customers.csv", header=True, schema="customer_id INT, name STRING, country STRING")
silver = orders.where("status = 'paid'").join(customers, "customer_id")
silver.select("order_id", "country", f.col("amount").cast("double").alias("amount")).write.parquet("silver")
gold = spark.read.parquet("silver").groupBy("country").agg(f.sum("amount").alias("total"), f.count("*").alias("n"))
gold.write.mode("overwrite").parquet("gold")
spark.stop()
