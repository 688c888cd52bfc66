"""A program whose event log alone gives the same lineage runs without the listener, until that is no longer so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from real_spark import RealSpark

COPY = """
import shutil, sys
from pyspark.sql import SparkSession
home = sys.argv[1]
shutil.rmtree(home + "/tables", ignore_errors=True)
spark = SparkSession.builder.config("spark.sql.warehouse.dir", home + "/tables").getOrCreate()
orders = spark.read.parquet(home + "/orders")
orders.selectExpr("id", "amount * 2 AS twice").write.mode("overwrite").parquet(home + "/doubled")
orders.createOrReplaceTempView("orders")
spark.sql("CREATE TABLE sums USING parquet AS SELECT shop, sum(amount) AS total FROM orders GROUP BY shop")
spark.stop()
"""
MAKE = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(3).selectExpr("id", "id * 10 AS amount", "'a' AS shop").write.parquet(sys.argv[1] + "/orders")
spark.stop()
"""
READ_RDD = '\nspark.sparkContext.textFile(home + "/more").saveAsTextFile(home + "/saved")\nspark.stop()\n'


def told(outcome: Any) -> dict[str, Any]:
    """Return what an event says that is the same in each run of a program."""
    assert outcome.error is None, outcome.printed
    lineage = outcome.lineage
    return {
        side: {
            one["name"]: (
                one["facets"]["schema"]["fields"],
                one["facets"].get("columnLineage"),
                one.get("inputFacets"),
                one.get("outputFacets", {}).get("outputStatistics", {}).get("rowCount"),
            )
            for one in lineage[side]
        }
        for side in ("inputs", "outputs")
    } | {
        "changes": [
            (one["change"], one["name"], one["schema"])
            for one in lineage["run_facets"]["sparkLineage_catalogChanges"]["changes"]
        ]
    }


def evidence(outcome: Any) -> list[str]:
    sources: list[str] = outcome.lineage["run_facets"]["sparkLineage_collection"]["evidence"]
    return sources


@pytest.mark.spark
@pytest.mark.truth
def test_the_second_run_has_the_event_log_alone_and_the_same_lineage(real_spark: RealSpark, tmp_path: Path) -> None:
    program = tmp_path / "double.py"
    program.write_text(MAKE)
    assert real_spark.run(program, tmp_path).error is None
    program.write_text(COPY)
    both, alone = (real_spark.run(program, tmp_path) for _ in range(2))
    assert (evidence(both), evidence(alone)) == (["listener", "event_log"], ["event_log"])
    assert told(both) == told(alone)
    assert "Lineage comes from Spark's event log (OpenLineage's listener added nothing to this program" in alone.printed
    assert "typesFrom" in alone.lineage["run_facets"]["sparkLineage_collection"]

    (tmp_path / "more").write_text("a line\n")
    program.write_text(COPY.replace("\nspark.stop()\n", READ_RDD))
    changed = real_spark.run(program, tmp_path)
    assert evidence(changed) == ["listener", "event_log"], "it is another program"
    again = real_spark.run(program, tmp_path)
    assert evidence(again) == ["listener", "event_log"], "the log alone has no path of a saved RDD"
