"""Two ledgers are compared: what one has and the other lacks, in all copies or once, and where amounts differ."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
bank = spark.read.csv("bank.csv", header=True, schema="ref STRING, booked DATE, amount INT")
books = spark.read.csv("books.csv", header=True, schema="ref STRING, posted DATE, total INT, clerk STRING")
entries = books.select("ref", "posted", "total")
bank.exceptAll(entries).write.parquet("not_posted")
entries.subtract(bank).write.parquet("not_booked")
sums = books.groupBy("ref").agg(f.sum("total").alias("total"), f.max("clerk").alias("clerk"))
both = bank.groupBy("ref").agg(f.sum("amount").alias("amount")).join(sums, ["ref"], "full_outer")
both.where("amount <> total OR amount IS NULL OR total IS NULL").select(
    "ref", (f.coalesce("amount", f.lit(0)) - f.coalesce("total", f.lit(0))).alias("difference"), "clerk"
).orderBy("ref").coalesce(1).write.csv("differences", header=True)
bank.createOrReplaceTempView("bank")
books.createOrReplaceTempView("books")
spark.sql("SELECT ref, booked FROM bank WHERE ref NOT IN (SELECT ref FROM books WHERE clerk <> 'robot')").write.json(
    "unseen"
)
spark.stop()
