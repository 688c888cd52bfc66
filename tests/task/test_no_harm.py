"""What runs with the stock operator runs with ours: whatever the paths, the listener, and what a job leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from spark_lineage.inject.jar import resolve_jar

if TYPE_CHECKING:
    from real_spark import RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.truth]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(3).write.mode("overwrite").parquet(sys.argv[1])
spark.stop()
"""
LEAVING = """
import subprocess, sys
from pathlib import Path
nohup = subprocess.Popen(["nohup", "sleep", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
Path(sys.argv[1]).write_text(str(nohup.pid))
sys.exit(3)
"""


def program(spark: RealSpark, text: str = PROGRAM) -> Path:
    file = spark.bench.root / "job.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "name",
    [
        "a,b#c?d[e]:f{g}*",
        pytest.param("a\\x=y", marks=pytest.mark.nightly),
        "a b%20ä;$",
    ],
)
def test_any_name_of_the_lineage_directory(real_spark: RealSpark, name: str) -> None:
    out = real_spark.bench.root / "out"
    outcome = real_spark.run(program(real_spark), out, lineage_dir=str(real_spark.bench.root / name))
    assert outcome.error is None, outcome.printed
    assert outcome.names("outputs") == [str(out)]
    assert ("The program cannot declare lineage" in outcome.printed) is (name != "a b%20ä;$")
    assert "No event log" not in outcome.printed


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("listener.jar", "openlineage_jar"),
        ("openlineage-spark.jar", "driver_class_path"),
        pytest.param("renamed.jar", "jars", marks=pytest.mark.nightly),
    ],
)
def test_a_listener_for_another_scala(real_spark: RealSpark, tmp_path: Path, name: str, argument: str) -> None:
    jar = resolve_jar(
        "io.openlineage:openlineage-spark_2.12:1.53.0",
        installation=real_spark.installation,
        cache_dir=real_spark.fast.jar_cache,
        timeout_seconds=300,
    )
    shutil.copy(jar, tmp_path / name)
    outcome = real_spark.run(program(real_spark), tmp_path / "out", **{argument: str(tmp_path / name)})
    assert outcome.error is None, outcome.printed
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without OpenLineage's listener" in line]
    assert f"{tmp_path / name} is for Scala 2.12, and Spark 4" in line
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["evidence"] == ["event_log"]


def test_what_the_program_leaves_behind_outlives_its_failure(real_spark: RealSpark, tmp_path: Path) -> None:
    outcome = real_spark.run(program(real_spark, LEAVING), tmp_path / "pid")
    assert "Error code is: 3." in (outcome.error or "")
    left = psutil.Process(int((tmp_path / "pid").read_text()))
    assert left.cmdline() == ["sleep", "100"]
    left.kill()
