"""Steps of a nightly run: two fail before they begin, one in a task; each failure is noted, and the rest goes on."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, customer STRING, amount STRING")
orders.createOrReplaceTempView("orders")


@f.udf("int")
def strict(text: str) -> int:
    """Take a whole number, or fail."""
    return int(text)


steps = {
    "missing_path": lambda: spark.read.parquet("no_such_path").write.parquet("copied"),
    "missing_column": lambda: spark.sql("SELECT id, price FROM orders").write.parquet("prices"),
    "strict": lambda: orders.select("id", strict("amount").alias("amount")).write.parquet("strict"),
    "lenient": lambda: (
        orders.where("amount RLIKE '^[0-9]+$'")
        .selectExpr("id", "CAST(amount AS INT) AS amount")
        .write.parquet("lenient")
    ),
}
failed = []
for name, step in steps.items():
    try:
        step()
    except (PySparkException, Py4JError) as error:
        failed.append((name, type(error).__name__))
spark.createDataFrame(failed, "step STRING, error STRING").coalesce(1).write.mode("overwrite").json("failures")
orders.groupBy("customer").agg(f.count("id").alias("orders")).write.csv("customers")
spark.stop()
