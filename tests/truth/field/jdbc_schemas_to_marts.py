"""Tables of two schemas, one with a quoted name, are joined: into files, and back into tables of the database."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ERP = {"user": "sa", "password": "pw-of-erp", "driver": "org.h2.Driver"}
URL = "jdbc:h2:file:./erp"
spark = SparkSession.builder.getOrCreate()
orders = spark.read.jdbc(URL, "SALES.ORDERS", properties=ERP)
items = spark.read.format("jdbc").options(url=URL, dbtable='SALES."line_items"', **ERP).load()
staff = spark.read.jdbc(URL, "HR.STAFF", "ID", 1, 100, 2, properties=ERP)
for name, table in (("orders", orders), ("items", items), ("staff", staff)):
    table.createOrReplaceTempView(name)
sold = spark.sql("""
    SELECT s.NAME AS seller, i.sku, i.price FROM orders o
    JOIN items i ON i.order_id = o.ID JOIN staff s ON s.ID = o.SELLER
    WHERE o.STATE = 'paid'
""")
sold.write.parquet("sold")
totals = sold.groupBy("seller").agg(f.sum("price").cast("bigint").alias("total"))
totals.write.jdbc(URL, "SALES.TOTALS", mode="append", properties=ERP)
staff.select("NAME", (f.col("WAGE") * 12).alias("YEARLY")).write.jdbc(URL, "HR.WAGES", mode="overwrite", properties=ERP)
spark.stop()
