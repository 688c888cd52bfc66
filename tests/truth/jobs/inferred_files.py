"""Several files whose schema is inferred, of directories that hold others; a glob; files of two directories."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
infer = {"header": True, "inferSchema": True}
spark.read.options(**infer).csv(["drop/a.csv", "drop/b.csv"]).select("sku", "qty").write.parquet("stock")
spark.read.json(["events/e1.json", "events/e2.json"]).selectExpr("id", "upper(kind) AS kind").write.parquet("kinds")
spark.read.options(**infer).csv(["north/n.csv", "south/s.csv"]).groupBy("shop").sum("amount").toDF(
    "shop", "total"
).write.parquet("totals")
spark.read.options(**infer).csv("days/2024-*.csv").where("v > 1").write.parquet("days_2024")
spark.read.options(header=True).csv(["drop/a.csv", "drop/c.csv"]).select("sku").distinct().write.parquet("skus")
print(spark.read.options(**infer).csv(["seen/one.csv", "seen/two.csv"]).count())
spark.stop()
