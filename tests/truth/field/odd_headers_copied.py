"""Headers out of a spreadsheet: copied, renamed, computed, filtered by, and summed under their own names."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

NAMES = (
    "Amount, EUR", "cost AS planned", "No #12, old", "Rate (1) [%]", "Net\nprice", "q`t", 'a"b', "it's", "#7", "THEN (",
    "CASE WHEN", "total ", "Grün & Weiß", "count(1)", "select", "x#12L", "a.b", "h[0]", "l{m}", "(1) Scan", "AS y",
    "null",
)  # fmt: skip


def quoted(name: str) -> str:
    """Return a name as SQL and the DataFrame API take it."""
    return "`" + name.replace("`", "``") + "`"


spark = SparkSession.builder.getOrCreate()
book = spark.read.parquet("book.parquet")
book.write.parquet("copy")
book.select(*[quoted(name) for name in reversed(NAMES)]).write.parquet("turned")
book.select(*[f.col(quoted(name)).alias(f"c{at:02}") for at, name in enumerate(NAMES)]).write.parquet("renamed")
book.selectExpr("id", *[f"{quoted(name)} * 2 AS {quoted(name)}" for name in NAMES]).write.parquet("doubled")
book.where(" AND ".join(f"{quoted(name)} >= 0" for name in NAMES)).select("id").write.parquet("filtered")
book.groupBy("id").agg(*[f.sum(quoted(name)).alias(name) for name in NAMES]).write.parquet("sums")
book.groupBy("id").agg(*[f.sum(quoted(name)) for name in NAMES]).write.parquet("unnamed_sums")
book.createOrReplaceTempView("book")
cases = (f"CASE WHEN {quoted(name)} > 5 THEN ({quoted(name)}) ELSE id END AS {quoted(name)}" for name in NAMES)
spark.sql(f"SELECT {', '.join(cases)} FROM book").write.parquet("cases")
spark.stop()
