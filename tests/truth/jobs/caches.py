"""A join that is cached and used twice, and a persisted aggregate over it."""

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
customers = spark.read.csv("customers.csv", header=True, inferSchema=True)
joined = orders.join(customers, "customer_id").cache()
joined.count()
joined.where("amount > 15").select("order_id", "name").write.parquet("big")
totals = joined.groupBy("name").agg(f.sum("amount").alias("total")).persist(StorageLevel.DISK_ONLY)
totals.write.parquet("totals")
totals.unpersist()
spark.stop()
