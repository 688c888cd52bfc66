"""Python functions of columns with odd headers: scalar, vectorised, over groups, and of whole frames."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
book = spark.read.parquet("book.parquet").coalesce(1)
label = f.udf(lambda number: f"({number}, x#1", "string")


@f.pandas_udf("double")
def gross(amount: pd.Series, rate: pd.Series) -> pd.Series:
    """Add the tax."""
    return amount * (1 + rate / 100.0)


@f.pandas_udf("double")
def spread(amount: pd.Series) -> float:
    """Return how far apart the amounts of a group are."""
    return float(amount.max() - amount.min())


def added(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Add up the columns of each row."""
    for batch in batches:
        yield pd.DataFrame({"sum, of (all)": batch.sum(axis=1), "#7": batch["#7"]})


def total(group: pd.DataFrame) -> pd.DataFrame:
    """Return one row of a group."""
    return pd.DataFrame({"x#12L": [group["x#12L"].iloc[0]], "total, AS t#1": [group["THEN ("].sum()]})


book.select("id", label("Amount, EUR").alias("Amount, EUR")).write.parquet("labels")
book.select(gross("cost AS planned", "Rate (1) [%]").alias("gross (1), EUR")).write.parquet("gross")
book.select(label("No #12, old"), f.upper(label("THEN ("))).write.parquet("unnamed")
book.where(label("it's") != "(").select(f.col("`a.b`").alias("a.b")).write.parquet("filtered")
book.groupBy("No #12, old").agg(spread("Net\nprice").alias("Net\nprice")).write.parquet("spreads")
book.select("Amount, EUR", "#7").mapInPandas(added, "`sum, of (all)` BIGINT, `#7` BIGINT").write.parquet("mapped")
book.select("x#12L", "THEN (").groupBy("x#12L").applyInPandas(
    total, "`x#12L` BIGINT, `total, AS t#1` BIGINT"
).write.parquet("applied")
spark.udf.register("label", label)
book.createOrReplaceTempView("book")
spark.sql("SELECT label(`count(1)`) AS `count(1)`, label(`l{m}` + 1) AS `select` FROM book").write.parquet("in_sql")
spark.stop()
