"""saveAsTable in every mode, and mode ignore on a path that is there."""

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders, more, last = (spark.read.csv(f"{name}.csv", header=True) for name in ("orders", "more", "last"))
orders.write.saveAsTable("kept")
more.write.mode("append").saveAsTable("kept")
last.write.mode("ignore").saveAsTable("kept")
with suppress(AnalysisException):
    last.write.mode("errorifexists").saveAsTable("kept")
orders.write.saveAsTable("replaced")
last.write.mode("overwrite").saveAsTable("replaced")
orders.write.mode("ignore").parquet("existing")
orders.write.mode("ignore").parquet("fresh")
spark.stop()
