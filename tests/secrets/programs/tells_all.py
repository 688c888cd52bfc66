"""A Spark program that spills each secret that it is given: into names, comments, SQL, its output, its exception."""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col


def turned(name: str) -> str:
    """Return what is written backwards in the arguments, so that Airflow has never seen it as it is."""
    return planted[f"planted_{name}"][::-1]


mode, orders, out, *arguments = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
conf = spark.sparkContext.getConf()
planted = dict(argument.split("=", 1) for argument in arguments if argument.startswith("planted_"))

lines = [f"nobody tells what {conf.get(name)} is" for name in ("spark.my.password", "spark.of.the.file.secret")]
lines.append(f"DB_PASSWORD in the environment is {os.environ['DB_PASSWORD']}")
lines += [text.replace("|", "\n") for text in planted.values()]
sys.stdout.write("\n".join(lines) + "\n")
sys.stdout.flush()

spark.sparkContext.setJobDescription(f"reads with password={turned('description')}")
frame = spark.read.schema("order_id int, amount int").option("header", True).csv(orders)
amount = col("amount").alias("amount", metadata={"comment": f"was password={turned('comment')}"})
frame.withColumn("amount", amount).createOrReplaceTempView("orders")
query = f"SELECT *, 'password={turned('sql')}' AS note FROM orders"  # noqa: S608 - a literal of the test's own
spark.sql(query).write.mode("overwrite").parquet(f"{out}/{mode}-{turned('path')}")
if mode == "fails_in_the_jvm":
    spark.sql(f"SELECT raise_error('broken password={turned('jvm')}') AS x FROM orders").collect()  # noqa: S608 - as above
if mode == "fails_in_python":
    raise RuntimeError(f"no login at https://me:{turned('python')}@host with {conf.get('spark.my.password')}")
spark.stop()
