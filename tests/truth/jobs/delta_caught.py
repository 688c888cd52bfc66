"""An UPDATE breaks in a task, a MERGE finds two rows for one, an append has a wrong column: caught. One succeeds."""

import sys

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
accounts, customers, limits = (f"delta.`{sys.argv[1]}/{name}`" for name in ("accounts", "customers", "limits"))
caps = spark.read.csv("caps.csv", header=True, schema="id INT, cap INT, city STRING")
caps.createOrReplaceTempView("caps")
for attempt in (
    lambda: spark.sql(f"UPDATE {accounts} SET balance = raise_error('no balance') WHERE id = 1"),
    lambda: spark.sql(
        f"MERGE INTO {customers} t USING caps s ON t.id = s.id WHEN MATCHED THEN UPDATE SET city = s.city"
    ),
    lambda: caps.selectExpr("id", "city AS day").write.format("delta").mode("append").save(f"{sys.argv[1]}/sales"),
    lambda: caps.select("id", "cap").write.format("delta").mode("append").save(f"{sys.argv[1]}/limits"),
):
    try:
        attempt()
    except (PySparkException, Py4JJavaError):
        continue
spark.stop()
