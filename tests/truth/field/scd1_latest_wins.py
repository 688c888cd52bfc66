"""What is there and what has changed are united, the latest row of each key wins, and deleted keys go."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
current = spark.read.parquet("customers.parquet")
changes = spark.read.csv("changes.csv", header=True, schema="id BIGINT, name STRING, updated STRING, op STRING")
latest = Window.partitionBy("id").orderBy(f.desc("updated"))
both = current.unionByName(changes, allowMissingColumns=True).withColumn("n", f.row_number().over(latest))
winners = both.where("n = 1").where("op IS NULL OR op <> 'D'").drop("n", "op")
winners.coalesce(1).write.mode("overwrite").parquet("customers_new")
gone = both.where("n = 1 AND op = 'D'").select("id", f.col("updated").alias("deleted"))
gone.write.csv("graveyard", mode="append", header=True)
spark.stop()
