"""Groups, cubes and rollups of the DataFrame API, of which no column has an alias."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
visits = spark.read.csv(
    "visits.csv", header=True, schema="page STRING, shop STRING, seen STRING, sec STRING, cost DOUBLE"
)
seconds = f.col("sec").cast("int")
visits.groupBy("shop").agg(f.sum(seconds), f.countDistinct(f.col("seen").cast("date"))).write.parquet("shops")
visits.groupBy(f.to_date("seen")).agg({"cost": "max", "page": "count"}).write.parquet("days")
visits.cube(f.col("sec").cast("int"), "shop").agg(f.sum("cost")).write.parquet("cube")
visits.rollup("shop", f.date_trunc("month", f.col("seen").cast("timestamp"))).count().write.parquet("months")
visits.select(
    "page",
    f.col("cost") * 2,
    f.upper("shop"),
    f.when(f.col("cost") > 1, f.col("page")).otherwise(f.col("shop")),
    f.coalesce("page", "shop"),
).write.parquet("pages")
visits.where(f.length("page") > 3).agg(
    f.avg("cost"), f.expr("max(CAST(sec AS INT)) FILTER (WHERE shop = 'oslo')")
).write.parquet("totals")
visits.groupBy("shop").sum("cost").where("`sum(cost)` > 1").orderBy(f.desc("sum(cost)")).limit(3).write.parquet("best")
visits.groupBy(f.year("seen"), f.lower("shop")).agg(f.max(f.struct("cost", "page"))).write.parquet("top")
spark.stop()
