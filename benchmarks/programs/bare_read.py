"""What ``benchmarks/archive.py`` compares with: Spark reads lineage files, parses the JSON of each line, and counts.

``json_loads`` parses in Python, with the lines brought there in the cheapest way that PySpark has; ``jvm_json`` is
Spark's own reader of JSON with a schema of what any merge needs, and Python has nothing to do with it. Both open files
at the same cost as the archive job.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator

from pyspark import RDD
from pyspark.serializers import UTF8Deserializer
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

# As in spark_lineage.archive.parts.
OPEN_COST_BYTES = 128 * 1024
SCHEMA = """
    eventTime string, eventType string,
    run struct<runId: string, facets: struct<parent: struct<run: struct<runId: string>>>>,
    job struct<namespace: string, name: string>,
    inputs array<struct<namespace: string, name: string, facets: string>>,
    outputs array<struct<namespace: string, name: string, facets: string>>
"""


def reader(spark: SparkSession) -> DataFrameReader:
    """Return what reads the lineage files of a directory, at any depth."""
    return spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.ndjson*")


def parsed(lines: Iterable[bytes]) -> Iterator[int]:
    """Count the lines that are JSON."""
    count = 0
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            continue
        count += 1
    yield count


def json_loads(spark: SparkSession, directory: str) -> int:
    """Parse in Python."""
    texts: DataFrame = reader(spark).option("lineSep", "\n").text(directory)
    # Spark pickles rows for `.rdd`, and decodes strings; bytes go as they are.
    content = texts.selectExpr("CAST(value AS BINARY)")._jdf  # noqa: SLF001
    content = getattr(content, "as")(spark._jvm.org.apache.spark.sql.Encoders.BINARY())  # type: ignore[union-attr] # noqa: SLF001
    lines: RDD[bytes] = RDD(content.toJavaRDD(), spark.sparkContext, UTF8Deserializer(use_unicode=False))  # type: ignore[no-untyped-call]
    return sum(lines.mapPartitions(parsed).collect())


def jvm_json(spark: SparkSession, directory: str) -> int:
    """Parse in the JVM; what is asked of each column keeps Spark from leaving it out."""
    events = reader(spark).schema(SCHEMA).json(directory)
    return events.where(
        "run.runId IS NOT NULL AND job.name IS NOT NULL AND eventTime IS NOT NULL AND "
        "size(inputs) + size(outputs) >= 0 AND (run.facets.parent.run.runId IS NULL OR eventType IS NOT NULL)"
    ).count()


def main() -> None:
    """Print how many events there are."""
    kind, master, directory = sys.argv[1:]
    builder = SparkSession.builder.master(master).config("spark.sql.files.openCostInBytes", OPEN_COST_BYTES)
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    print({"json_loads": json_loads, "jvm_json": jvm_json}[kind](spark, directory))
    spark.stop()


if __name__ == "__main__":
    main()
