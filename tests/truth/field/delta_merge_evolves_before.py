"""Makes the Delta tables profiles and audit."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
profiles = spark.sql("SELECT * FROM VALUES (1, 'ann@x'), (2, 'bob@x') AS t(id, email)")
profiles.coalesce(1).write.format("delta").save(f"{sys.argv[1]}/profiles")
spark.sql("SELECT 1 AS id").write.format("delta").save(f"{sys.argv[1]}/audit")
spark.stop()
