"""Python functions beside scalar subqueries: in a column, in a filter, in HAVING, and over a group."""

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()


@f.pandas_udf("double")
def spread(amounts: pd.Series) -> float:
    """How far apart the amounts of a group are."""
    return float(amounts.max() - amounts.min())


spark.udf.register("net", lambda amount, percent: amount * (100 - percent) / 100, "double")
spark.udf.register("initials", lambda name: "".join(part[0] for part in name.split()), "string")
spark.udf.register("spread", spread)
for name in ("orders", "taxes", "goals"):
    spark.read.csv(f"{name}.csv", header=True, inferSchema=True).createOrReplaceTempView(name)
spark.sql("""
    SELECT order_id, initials(customer) AS who, net(amount, 10) * (SELECT MAX(factor) FROM taxes) AS net FROM orders
""").write.parquet("net_orders")
spark.sql("""
    SELECT order_id, UPPER(initials(customer)) AS who FROM orders
    WHERE net(amount, 50) > (SELECT AVG(goal) FROM goals WHERE team = 'north')
""").write.parquet("good_orders")
spark.sql("""
    SELECT customer, spread(amount) AS spread FROM orders GROUP BY customer
""").write.parquet("spreads")
spark.sql("""
    SELECT initials(customer) AS who, SUM(amount) AS total FROM orders
    GROUP BY initials(customer) HAVING SUM(amount) >= (SELECT MIN(goal) FROM goals)
""").write.parquet("achievers")
spark.stop()
