"""Loads what a configuration lists; tables that are missing or fail their checks are logged, and make the job fail."""

import sys

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

TABLES = {
    "customers": {
        "format": "csv",
        "options": {"header": True},
        "schema": "id INT, name STRING, vip BOOLEAN",
        "key": "id",
        "columns": ["id", "upper(name) AS name"],
        "filter": "vip",
    },
    "orders": {
        "format": "json",
        "options": {},
        "schema": "id INT, customer INT, amount INT",
        "key": "id",
        "columns": ["id", "customer", "amount"],
        "filter": "amount > 0",
    },
    "refunds": {"format": "parquet", "options": {}, "schema": None, "key": "id", "columns": ["*"], "filter": "true"},
}

spark = SparkSession.builder.appName("config-driven load").getOrCreate()
results = []
for name, table in TABLES.items():
    reader = spark.read.format(table["format"]).options(**table["options"])
    try:
        source = (reader.schema(table["schema"]) if table["schema"] else reader).load(f"landing/{name}")
    except AnalysisException as error:
        results.append((name, "missing", 0))
        print(name, str(error).splitlines()[0])
        continue
    bad = source.where(f.col(table["key"]).isNull()).count()
    twice = source.groupBy(table["key"]).count().where("count > 1").count()
    if bad or twice:
        results.append((name, "refused", bad + twice))
        continue
    source.where(table["filter"]).selectExpr(*table["columns"]).write.mode("overwrite").parquet(f"lake/{name}")
    results.append((name, "loaded", source.count()))

spark.createDataFrame(results, "name STRING, outcome STRING, rows BIGINT").coalesce(1).write.mode("append").csv(
    "load_log"
)
spark.stop()
sys.exit(3 if any(outcome != "loaded" for _, outcome, _ in results) else 0)
