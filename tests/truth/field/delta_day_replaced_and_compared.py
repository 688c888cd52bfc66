"""A day of a Delta table is replaced by INSERT … REPLACE WHERE and another by writeTo; yesterday and all are read."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
spark.read.csv("counts.csv", header=True, schema="sku STRING, qty INT").createOrReplaceTempView("counts")
spark.sql("""
    INSERT INTO stock REPLACE WHERE day = '2024-01-02' SELECT sku, qty, '2024-01-02' AS day FROM counts WHERE qty > 0
""")
spark.sql("SELECT sku, qty FROM stock WHERE day = '2024-01-01'").write.parquet("yesterday")

late = spark.read.csv("late.csv", header=True, schema="item STRING, pieces INT")
late = late.select(f.col("item").alias("sku"), f.col("pieces").alias("qty"), f.lit("2024-01-03").alias("day"))
late.writeTo("stock").overwrite(f.col("day") == "2024-01-03")
spark.table("stock").groupBy("day").agg(f.sum("qty").alias("qty")).write.parquet("days")
spark.stop()
