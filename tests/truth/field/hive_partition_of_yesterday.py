"""One day of a Hive table is made anew; it is compared with the day before, and all days are summed."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
counts = spark.read.csv("counts.csv", header=True, schema="sku STRING, qty INT")
counts.createOrReplaceTempView("counts")
spark.sql("""
    INSERT OVERWRITE TABLE shop.stock PARTITION (day = '2024-01-02') SELECT sku, qty FROM counts WHERE qty >= 0
""")
spark.sql("""
    SELECT t.sku, t.qty AS qty_today, y.qty AS qty_before
    FROM shop.stock t JOIN shop.stock y ON t.sku = y.sku
    WHERE t.day = '2024-01-02' AND y.day = '2024-01-01'
""").write.parquet("growth")
spark.sql("SELECT sku FROM shop.stock WHERE day = '2024-01-01'").write.parquet("skus_yesterday")
spark.sql("SELECT sku, sum(qty) AS qty FROM shop.stock GROUP BY sku").write.parquet("totals")
spark.stop()
