"""Whole groups go through pandas: a forecast per shop, the last price before each trade, and a cleaning map."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def forecast(sales: pd.DataFrame) -> pd.DataFrame:
    """Take the mean of a shop's days for its next one."""
    return pd.DataFrame({"shop": [sales["shop"].iloc[0]], "expected": [float(sales["amount"].mean())]})


def as_of(trades: pd.DataFrame, prices: pd.DataFrame) -> pd.DataFrame:
    """Value each trade by the newest price of its item."""
    both = pd.merge_asof(trades.sort_values("day"), prices.sort_values("day"), on="day", by="item")
    return both.assign(worth=both["qty"] * both["price"])[["item", "day", "worth"]]


def cleaned(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Trim names, and leave out what has none."""
    for batch in batches:
        named = batch.assign(name=batch["name"].str.strip())
        yield named[named["name"] != ""]


sales = spark.read.csv("sales.csv", header=True, schema="shop STRING, day INT, amount DOUBLE, clerk STRING")
of_shops = sales.where("amount > 0").select("shop", "amount").groupBy("shop")
of_shops.applyInPandas(forecast, "shop STRING, expected DOUBLE").write.parquet("forecasts")

trades = spark.read.csv("trades.csv", header=True, schema="item STRING, day INT, qty DOUBLE")
prices = spark.read.csv("prices.csv", header=True, schema="item STRING, day INT, price DOUBLE")
pairs = trades.groupBy("item").cogroup(prices.groupBy("item"))
pairs.applyInPandas(as_of, "item STRING, day INT, worth DOUBLE").write.parquet("worths")

people = spark.read.csv("people.csv", header=True, schema="id INT, name STRING, born INT")
people.select("id", "name").mapInPandas(cleaned, "id INT, name STRING").write.mode("overwrite").parquet("people")
spark.stop()
