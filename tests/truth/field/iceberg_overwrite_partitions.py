"""Writes Iceberg with writeTo: overwrites the partitions that came, replaces a table, appends to one it has made."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, day DATE, amount INT, status STRING, country STRING")
countries = spark.read.csv("countries.csv", header=True, schema="code STRING, region STRING, active BOOLEAN")

paid = orders.where("status = 'paid'")
daily = paid.groupBy("day").agg(f.sum("amount").alias("total"), f.count("id").alias("orders"))
daily.writeTo("ice.db.daily").overwritePartitions()

regions = countries.where("active").select(f.col("code").alias("country"), f.upper("region").alias("region"))
regions.writeTo("ice.db.regions").using("iceberg").tableProperty("format-version", "2").createOrReplace()

refused = orders.where("status = 'refused'").select("id", "country")
refused.writeTo("ice.db.refused").using("iceberg").create()
late = orders.where(f.col("day") < "2023-01-01").select("id", f.lit("??").alias("country"))
late.writeTo("ice.db.refused").append()
spark.stop()
