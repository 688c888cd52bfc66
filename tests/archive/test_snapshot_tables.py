"""Delta tables with Delta's own jars: a run that dies leaves what it wrote, and nobody reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import resolve_jar

if TYPE_CHECKING:
    from fast_spark import FastSpark

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).parents[1] / "plugins" / "programs" / "archive_snapshots.py"
JARS = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
LIMIT_SECONDS = 300


def test_what_a_dead_run_wrote_is_not_read_and_is_taken_back(fast_spark: FastSpark, tmp_path: Path) -> None:
    env = fast_spark.plain_env
    jars = [
        resolve_jar(
            coordinate,
            installation=lambda: find_installation("spark-submit", env),
            cache_dir=fast_spark.jar_cache,
            timeout_seconds=LIMIT_SECONDS,
        )
        for coordinate in JARS
    ]
    conf = [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]
    submit = " ".join(["--jars", ",".join(jars), *conf, "pyspark-shell"])
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "out"), "delta"],
        env=env | {"PYSPARK_SUBMIT_ARGS": submit, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.stdout == "as it should be\n", done.stderr[-5000:]
