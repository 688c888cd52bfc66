"""A static INSERT OVERWRITE of a day of an Iceberg table; yesterday; REPLACE WHERE; overwrite by condition."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
counts = spark.read.csv("counts.csv", header=True, schema="sku STRING, qty INT")
late = spark.read.csv("late.csv", header=True, schema="item STRING, pieces INT")
counts.createOrReplaceTempView("counts")
late.createOrReplaceTempView("late")
spark.sql("INSERT OVERWRITE ice.db.stock PARTITION (day = '2024-01-02') SELECT sku, qty FROM counts WHERE qty > 0")
spark.sql("SELECT sku, qty FROM ice.db.stock WHERE day = '2024-01-01'").write.parquet("yesterday")

spark.sql("""
    INSERT INTO ice.db.prices REPLACE WHERE region = 'north' SELECT item, 'north' AS region, pieces FROM late
""")
south = counts.select("sku", f.lit("south").alias("region"), f.col("qty").alias("cents"))
south.writeTo("ice.db.prices").overwrite(f.col("region") == "south")
spark.table("ice.db.prices").groupBy("sku").agg(f.max("cents").alias("most")).write.parquet("most")
spark.stop()
