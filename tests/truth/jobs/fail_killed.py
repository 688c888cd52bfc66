"""SIGKILL comes to the driver's JVM while the second of two writes runs."""

import os
import signal
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.select("id", "amount").write.parquet("good")
endless = orders.crossJoin(spark.range(10**13).withColumnRenamed("id", "n")).where("hash(n) = id").select("id", "n")
threading.Thread(target=endless.write.parquet, args=["slow"], daemon=True).start()
while not Path("slow/_temporary").exists():
    time.sleep(0.1)
time.sleep(2)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(20)
os._exit(1)
