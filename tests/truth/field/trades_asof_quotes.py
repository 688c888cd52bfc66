"""Each trade gets the last quote before it, the fee of its size, and the events that it fell into."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
trades = spark.read.csv("trades.csv", header=True, schema="trade INT, symbol STRING, at TIMESTAMP, size INT")
quotes = spark.read.csv("quotes.csv", header=True, schema="symbol STRING, quoted TIMESTAMP, bid DOUBLE, ask DOUBLE")
fees = spark.read.csv("fees.csv", header=True, schema="from_size INT, to_size INT, fee DOUBLE")
t, q = trades.alias("t"), quotes.alias("q")
pairs = t.join(q, (f.col("t.symbol") == f.col("q.symbol")) & (f.col("q.quoted") <= f.col("t.at")), "left")
latest = Window.partitionBy("t.trade").orderBy(f.desc("q.quoted"))
priced = (
    pairs.withColumn("n", f.row_number().over(latest))
    .where("n = 1")
    .select("t.trade", "t.symbol", "t.size", ((f.col("q.bid") + f.col("q.ask")) / 2).alias("mid"))
)
priced.write.mode("overwrite").parquet("priced")
spark.read.parquet("priced").createOrReplaceTempView("priced")
fees.createOrReplaceTempView("fees")
spark.sql("""
    SELECT p.trade, p.size * p.mid AS paid, p.size * p.mid * f.fee AS fee
    FROM priced p JOIN fees f ON p.size >= f.from_size AND p.size < f.to_size
    ORDER BY p.trade
""").write.mode("overwrite").parquet("fees_paid")
earlier = trades.select(f.col("trade").alias("before"), "symbol", f.col("at").alias("before_at"))
near = trades.join(earlier, "symbol").where(
    "trade <> before AND at - before_at BETWEEN INTERVAL 0 SECOND AND INTERVAL 1 MINUTE"
)
near.select("trade", "before").write.mode("overwrite").json("near")
spark.stop()
