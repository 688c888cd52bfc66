"""Makes the Delta table meters, with 30 columns of measures."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
measures = ", ".join(f"id * {n} AS m{n:02}" for n in range(1, 31))
meters = spark.sql(f"SELECT id, 'old' AS source, {measures} FROM VALUES (1), (2) AS t(id)")
meters.coalesce(1).write.format("delta").save(f"{sys.argv[1]}/meters")
spark.stop()
