"""Reference data is cached by SQL, by a data frame and lazily, joined by USING, and uncached before its next use."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
spark.read.csv("customers.csv", header=True, inferSchema=True).createOrReplaceTempView("customers")
spark.read.csv("countries.csv", header=True, inferSchema=True).createOrReplaceGlobalTempView("countries")
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.sql("CACHE TABLE vip AS SELECT id AS customer_id, name, country FROM customers WHERE visits > 3")
spark.sql("CACHE LAZY TABLE rates AS SELECT code, MAX(rate) AS rate FROM global_temp.countries GROUP BY code")
spark.table("vip").count()
spark.sql("""
    SELECT customer_id, order_id, name, amount * rate AS local_amount
    FROM orders JOIN vip USING (customer_id) LEFT JOIN rates ON rates.code = vip.country
""").write.parquet("vip_orders")
spark.sql("UNCACHE TABLE vip")
small = spark.table("vip").select("customer_id").cache()
rest = spark.table("orders").join(f.broadcast(small), ["customer_id"], "left_anti")
rest.groupBy("customer_id").agg(f.approx_count_distinct("order_id").alias("orders")).write.parquet("others")
small.unpersist()
spark.sql("CLEAR CACHE")
spark.sql("SELECT name, country FROM vip WHERE country IN (SELECT code FROM rates WHERE rate > 1)").write.csv("foreign")
spark.stop()
