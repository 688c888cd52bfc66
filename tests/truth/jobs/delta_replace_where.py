"""One day of a Delta table is replaced from a file, by condition; the other day stays."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
new = spark.read.csv("new.csv", header=True, schema="day STRING, shop INT, amount INT")
cents = new.where("shop > 0").withColumn("amount", f.col("amount") * 100)
write = cents.write.format("delta").mode("overwrite").option("replaceWhere", "day = '2024-01-02'")
write.save(f"{sys.argv[1]}/sales")
spark.stop()
