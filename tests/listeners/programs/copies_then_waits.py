"""Copy orders, and then begin to copy them again, without an end until a file is there."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

source, target, released = sys.argv[1:]
spark = SparkSession.builder.appName("copies").getOrCreate()
orders = spark.read.csv(source, header=True, inferSchema=True)
orders.select("order_id").write.mode("overwrite").parquet(target)
Path(f"{target}.written").touch()
while not Path(released).exists():
    time.sleep(0.1)
orders.select("amount").write.mode("overwrite").parquet(f"{target}_late")
spark.stop()
