"""Windows without an alias: ranks, lags, running sums, a share of all, and a window over aggregates."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
trades = spark.read.parquet("trades.parquet")
trades.createOrReplaceTempView("trades")
for name, query in {
    "numbered": "SELECT id, row_number() OVER (PARTITION BY desk ORDER BY CAST(at AS DATE)) FROM trades",
    "sums": "SELECT id, sum(CAST(size AS INT)) OVER (PARTITION BY desk) FROM trades",
    "changes": "SELECT desk, price - lag(price) OVER (PARTITION BY desk ORDER BY id) FROM trades",
    "shares": "SELECT desk, sum(price), sum(price) / sum(sum(price)) OVER () FROM trades GROUP BY desk",
    "latest": """
        SELECT id, price FROM (
            SELECT *, rank() OVER (PARTITION BY desk, to_date(at) ORDER BY CAST(size AS INT) DESC) AS r FROM trades
        ) WHERE r = 1
    """,
    "moving": """
        SELECT id, avg(price * CAST(size AS INT)) OVER (ORDER BY to_date(at) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
        FROM trades
    """,
    "qualified": """
        SELECT id, CASE WHEN ntile(4) OVER (PARTITION BY desk ORDER BY price) = 1 THEN (at) ELSE size END FROM trades
    """,
}.items():
    spark.sql(query).write.parquet(name)
by_day = Window.partitionBy(f.to_date("at"))
trades.select("id", f.max(f.col("size").cast("int")).over(by_day)).write.parquet("best")
spark.stop()
