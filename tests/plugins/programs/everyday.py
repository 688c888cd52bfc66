"""What a usual job loads: files read, joined, grouped and written, tables, a view, and the UI asked for its state."""

from __future__ import annotations

import sys
import urllib.request

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

work = sys.argv[1]
spark = SparkSession.builder.appName("everyday").getOrCreate()
orders = spark.createDataFrame(
    [(number, number % 3, number * 1.5) for number in range(50)], "id int, kind int, n double"
)
orders.write.mode("overwrite").csv(f"{work}/csv", header=True)
read = spark.read.csv(f"{work}/csv", header=True, inferSchema=True)
read.write.mode("overwrite").partitionBy("kind").parquet(f"{work}/parquet")
kinds = spark.createDataFrame([(0, "a"), (1, "b")], "kind int, name string")
kinds.write.mode("overwrite").json(f"{work}/json")
joined = spark.read.parquet(f"{work}/parquet").join(spark.read.json(f"{work}/json"), "kind", "left")
joined.withColumn("upper", f.upper("name")).filter("n > 3").createOrReplaceTempView("joined")
spark.sql("CREATE TABLE sums USING parquet AS SELECT name, sum(n) AS n FROM joined GROUP BY name")
spark.sql("INSERT INTO sums SELECT upper, count(DISTINCT id) FROM joined GROUP BY upper ORDER BY upper")
spark.sql("ALTER TABLE sums RENAME TO totals")
spark.table("totals").cache().count()
spark.sql("DROP TABLE totals")
spark.sparkContext.textFile(f"{work}/csv").map(len).sum()
urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}/api/v1/applications", timeout=30).read()  # noqa: S310
spark.stop()
