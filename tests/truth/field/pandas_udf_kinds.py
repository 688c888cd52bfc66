"""Vectorised functions of every kind: of Series, of an iterator, an aggregate in groups and windows, a filter."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()


@f.pandas_udf("double")
def gross(amount: pd.Series, rate: pd.Series) -> pd.Series:
    """Add the tax."""
    return amount * (1 + rate)


@f.pandas_udf("string")
def size(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    """Name how large each amount is."""
    for amounts in batches:
        yield amounts.map(lambda amount: "large" if amount > 15 else "small")


@f.pandas_udf("double")
def spread(amount: pd.Series) -> float:
    """Tell how far apart the amounts of a group are."""
    return float(amount.max() - amount.min())


@f.pandas_udf("boolean")
def known(customer: pd.Series) -> pd.Series:
    """Tell whether a customer has a name."""
    return customer != "?"


orders = spark.read.csv("orders.csv", header=True, schema="id INT, customer STRING, amount DOUBLE, rate DOUBLE")
orders.select("id", gross("amount", "rate").alias("gross"), size("amount").alias("size")).write.parquet("priced")
orders.groupBy("customer").agg(spread("amount").alias("spread")).write.parquet("spreads")
whole = Window.partitionBy("customer")
orders.select("id", spread("amount").over(whole).alias("spread")).write.parquet("with_spread")
orders.where(known("customer")).select("id").write.parquet("known")
spark.stop()
