"""Exports tables of a database in threads, as a configuration says: by ranges of a key, predicates, or a query."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

URL = "jdbc:h2:file:./bank"
BANK = {"user": "sa", "password": "pw-of-bank", "driver": "org.h2.Driver"}
EXPORTS: list[dict[str, Any]] = [
    {
        "to": "accounts",
        "read": {
            "dbtable": "PUBLIC.ACCOUNTS",
            "partitionColumn": "ID",
            "lowerBound": 1,
            "upperBound": 4,
            "numPartitions": 2,
        },
        "columns": ["ID AS id", "upper(OWNER) AS owner"],
        "where": "BALANCE > 0",
    },
    {
        "to": "payments",
        "table": "PUBLIC.PAYMENTS",
        "predicates": ["METHOD = 'card'", "METHOD = 'bank'"],
        "columns": ["ACCOUNT AS account", "AMOUNT AS amount", "METHOD AS method"],
        "where": "METHOD <> 'cash'",
    },
    {
        "to": "branches",
        "read": {"query": "SELECT CODE, CITY FROM PUBLIC.BRANCHES"},
        "columns": ["CODE AS code", "CITY AS city"],
        "where": "CITY IS NOT NULL",
    },
]

spark = SparkSession.builder.getOrCreate()


def extract(export: dict[str, Any]) -> DataFrame:
    """Read one table in its way."""
    if "predicates" in export:
        return spark.read.jdbc(URL, export["table"], predicates=export["predicates"], properties=BANK)
    return spark.read.format("jdbc").options(url=URL, **BANK, **export["read"]).load()


def run(export: dict[str, Any]) -> str:
    """Export one table."""
    extract(export).where(export["where"]).selectExpr(*export["columns"]).write.parquet(f"lake/{export['to']}")
    return export["to"]


with ThreadPoolExecutor(2) as threads:
    for done in threads.map(run, EXPORTS):
        print(done)
per_method = spark.read.parquet("lake/payments").groupBy("method").agg(f.sum("amount").alias("total"))
per_method.write.mode("overwrite").parquet("lake/per_method")
spark.stop()
