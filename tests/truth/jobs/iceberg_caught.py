"""A MERGE meets two rows for one, an UPDATE fails in a task, a CTAS breaks: all caught. A CTAS succeeds."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("caps.csv", header=True, schema="id INT, cap INT, city STRING").createOrReplaceTempView("caps")
for sql in (
    "MERGE INTO ice.db.customers t USING caps s ON t.id = s.id WHEN MATCHED THEN UPDATE SET city = s.city",
    "UPDATE ice.db.accounts SET balance = raise_error('no balance') WHERE id = 1",
    "CREATE TABLE ice.db.broken USING iceberg AS SELECT id, IF(cap > 15, raise_error('cap'), cap) AS cap FROM caps",
    "CREATE TABLE ice.db.caps USING iceberg AS SELECT id, cap FROM caps",
):
    try:
        spark.sql(sql)
    except (PySparkException, Py4JJavaError):
        continue
spark.stop()
