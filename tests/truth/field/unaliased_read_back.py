"""Columns without an alias are written, read back by their long names, cached, and summed again."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
spark.read.csv("sales.csv", header=True).createOrReplaceTempView("sales")
spark.sql("""
    SELECT shop, sum(CAST(b AS INT)), count(DISTINCT to_date(d)) FROM sales GROUP BY shop
""").write.parquet("one")
one = spark.read.parquet("one")
one.createOrReplaceTempView("one")
spark.sql("""
    SELECT avg(`sum(CAST(b AS INT))`), max(`count(DISTINCT to_date(d))`) FROM one WHERE shop <> 'x'
""").write.csv("two", header=True)
two = spark.read.csv("two", header=True)
two.select(f.upper("`avg(sum(CAST(b AS INT)))`"), f.length(f.col("`max(count(DISTINCT to_date(d)))`"))).write.json(
    "three"
)
kept = spark.sql("SELECT d, CAST(b AS INT) * 2, if(b > 1, d, shop) FROM sales").cache()
print(kept.count())
kept.select("d", "(CAST(b AS INT) * 2)").write.parquet("four")
kept.groupBy("(IF((b > 1), d, shop))").agg(f.max("(CAST(b AS INT) * 2)")).write.parquet("five")
one.where(f.col("sum(CAST(b AS INT))") > 1).drop("shop").distinct().write.orc("six")
one.withColumnRenamed("sum(CAST(b AS INT))", "b").withColumn("c", f.expr("b + `count(DISTINCT to_date(d))`")).select(
    "b", "c"
).write.parquet("seven")
spark.stop()
