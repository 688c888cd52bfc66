"""A workbook saved as CSV with its own headers, quoted ones among them, is cleaned, renamed and written again."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
sheet = spark.read.csv("sheet.csv", header=True, inferSchema=True, multiLine=True)
sheet.write.csv("copy", header=True)
sheet.select(
    f.trim("Name, full").alias("name"), (f.col("Amount (EUR)") * f.col("No #12, old")).alias("Total, EUR")
).write.csv("totals", header=True)
sheet.withColumnsRenamed({"Amount (EUR)": "amount AS x", "cost AS planned": "cost"}).drop("No #12, old").write.json(
    "renamed"
)
sheet.na.fill({"cost AS planned": 0}).groupBy("THEN (").agg({"cost AS planned": "sum", "*": "count"}).write.parquet(
    "filled"
)
sheet.createOrReplaceTempView("sheet")
spark.sql(
    "SELECT sum(CAST(`Amount (EUR)` AS INT)), max(`Two\nlines`) FROM sheet WHERE `THEN (` <> 'x, (y'"
).write.parquet("sums")
spark.sql("SELECT `Name, full` FROM sheet WHERE `cost AS planned` IS NOT NULL ORDER BY `trailing ` LIMIT 1").write.text(
    "first"
)
sheet.toDF(*[f"c{at}" for at in range(7)]).where("c1 > 0").select("c0", "c6").write.parquet("plain")
again = spark.read.csv("totals", header=True)
again.select(f.upper("name"), f.col("Total, EUR").cast("int")).write.parquet("again")
spark.stop()
