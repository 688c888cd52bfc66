"""Loads a star: a product that no dimension knows gets an inferred row; facts have the rate of their day."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv(
    "orders.csv", header=True, schema="id INT, product STRING, day DATE, amount DOUBLE, currency STRING"
)
rates = spark.read.csv("rates.csv", header=True, schema="code STRING, valid_from DATE, valid_to DATE, rate DOUBLE")
known = spark.read.parquet("product_dimension")

late = orders.join(known, "product", "left_anti").select("product").distinct()
inferred = late.select(
    f.sha2("product", 256).alias("product_key"),
    "product",
    f.lit("unknown").alias("category"),
    f.lit(True).alias("inferred"),
)
known.unionByName(inferred).write.mode("overwrite").parquet("product_dimension_v2")

orders.createOrReplaceTempView("orders")
rates.createOrReplaceTempView("rates")
spark.read.parquet("product_dimension_v2").createOrReplaceTempView("products")
facts = spark.sql("""
    SELECT /*+ BROADCAST(r) */ o.id, p.product_key, CAST(date_format(o.day, 'yyyyMMdd') AS INT) AS date_key,
           round(o.amount * coalesce(r.rate, 1), 2) AS amount_eur
    FROM orders o
    JOIN products p ON p.product = o.product
    LEFT JOIN rates r ON r.code = o.currency AND o.day >= r.valid_from AND o.day < r.valid_to
""")
facts.write.mode("overwrite").parquet("sales_facts")
spark.stop()
