"""Two older versions of a Delta table are compared, by number and by time; the table of now is read for itself."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
times = {row.version: str(row.timestamp) for row in spark.sql("DESCRIBE HISTORY stock").collect()}
spark.sql(f"""
    SELECT o.sku, o.qty AS before, n.qty AS after
    FROM (SELECT * FROM stock VERSION AS OF 1) o JOIN (SELECT * FROM stock TIMESTAMP AS OF '{times[2]}') n
    ON n.sku = o.sku
""").write.parquet("compared")
spark.sql("SELECT * FROM stock VERSION AS OF 3").groupBy("sku").agg(f.sum("qty").alias("qty")).write.json("sums")
prices = spark.table("prices")
prices.where("cents > 10").select("sku").write.json("dear")
spark.stop()
