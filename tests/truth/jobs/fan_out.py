"""Three inputs and four outputs; each output is made of its own inputs."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True)
customers = spark.read.csv("customers.csv", header=True)
products = spark.read.csv("products.csv", header=True)
orders.where("status = 'open'").select("order_id").write.parquet("open_orders")
orders.join(customers, "customer_id").select("order_id", "name").write.parquet("named_orders")
products.select("sku").write.json("skus")
customers.select("customer_id").unionAll(products.select("sku")).write.csv("keys", header=True)
spark.stop()
