"""One query for several tables: named and positional parameters, IDENTIFIER, and data frames named in the text."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for country in ("no", "se"):
    spark.read.csv(f"sales_{country}.csv", header=True, inferSchema=True).createOrReplaceTempView(f"sales_{country}")
for country, measure in (("no", "amount"), ("se", "pieces")):
    report = spark.sql(
        """
        SELECT shop, SUM(IDENTIFIER(:measure)) AS total, :country AS country
        FROM IDENTIFIER('sales_' || :country)
        WHERE day BETWEEN :first AND :last
        GROUP BY shop
        """,
        args={"measure": measure, "country": country, "first": "2024-01-01", "last": "2024-01-31"},
    )
    report.write.mode("append").parquet("report")
big = spark.sql("SELECT shop, day FROM sales_no WHERE amount > ? AND shop <> ?", args=[10, "test"])
big.write.mode("overwrite").parquet("big_days")
names = spark.read.json("shops.json", schema="id STRING, name STRING")
named = spark.sql("SELECT s.name, b.day FROM {big} b JOIN {shops} s ON s.id = b.shop", big=big, shops=names)
named.write.json("named_days")
spark.stop()
