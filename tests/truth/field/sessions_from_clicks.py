"""Clicks become sessions by gaps of half an hour, days are summed from those, and each click gets its next page."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

GAP = 30 * 60
spark = SparkSession.builder.getOrCreate()
clicks = spark.read.csv("clicks.csv", header=True, schema="user STRING, page STRING, at TIMESTAMP, agent STRING")
clicks = clicks.where(~f.col("agent").contains("bot"))
by_user = Window.partitionBy("user").orderBy("at")
seconds = f.unix_timestamp("at")
gap = seconds - f.lag(seconds).over(by_user)
numbered = clicks.withColumn("is_new", f.when(gap.isNull() | (gap > GAP), 1).otherwise(0)).withColumn(
    "session", f.sum("is_new").over(by_user.rowsBetween(Window.unboundedPreceding, Window.currentRow))
)
sessions = numbered.groupBy("user", "session").agg(
    f.min("at").alias("started"),
    f.max("at").alias("ended"),
    f.countDistinct("page").alias("pages"),
    f.sort_array(f.collect_set("page")).alias("seen"),
)
sessions.withColumn("minutes", (f.unix_timestamp("ended") - f.unix_timestamp("started")) / 60).write.mode(
    "overwrite"
).parquet("sessions")
stored = spark.read.parquet("sessions")
stored.groupBy(f.to_date("started").alias("day")).agg(
    f.count("*").alias("sessions"), f.avg("minutes").alias("mean_minutes"), f.sum("pages").alias("pages")
).write.mode("overwrite").json("session_days")
clicks.select("user", "page", f.lead("page", 1, "exit").over(by_user).alias("next_page")).write.csv("steps")
spark.stop()
