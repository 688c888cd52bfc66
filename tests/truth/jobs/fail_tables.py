"""An INSERT and a CTAS break in a task: the table keeps what it had, and no new table is left. Both are caught."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, status STRING")
orders.createOrReplaceTempView("orders")
spark.sql("CREATE TABLE kept (id INT, amount INT) USING parquet")
spark.sql("CREATE TABLE empty (id INT) USING parquet")
checked = "IF(amount > 15, raise_error('too much'), amount) AS amount"
for sql in (
    "INSERT INTO kept SELECT id, amount FROM orders WHERE id = 1",
    f"INSERT INTO kept SELECT id, {checked} FROM orders",
    f"CREATE TABLE broken USING parquet AS SELECT id, {checked} FROM orders",
    "INSERT INTO kept SELECT no_such_column, 1 FROM orders",
):
    try:
        spark.sql(sql)
    except (PySparkException, Py4JJavaError):
        continue
spark.stop()
