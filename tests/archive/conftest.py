"""For tests of the archive: one Spark in the process of the tests."""

from __future__ import annotations

import sys
import uuid
from typing import TYPE_CHECKING

import pytest
from fast_spark import JAVA_ENV

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """``local[2]``, in UTC as the job has it; its JVM ends with the last test that uses it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as environment:
        for key, value in {**JAVA_ENV, "SPARK_LOCAL_IP": "127.0.0.1"}.items():
            environment.setenv(key, value)
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master("local[2]")
            # A line of 64 MB takes 0.8 GB where Spark reads it; a session of many tests keeps much else.
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .config("spark.local.dir", str(home / "local"))
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    # The next session of this process, if there is one, may have other jars.
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(params=["file", "viewfs"])
def home(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> tuple[Path, str]:
    """A directory, and how it is named; as on HDFS, Hadoop alone reads what is in a mount."""
    home = tmp_path / "archive"
    home.mkdir()
    if request.param == "file":
        return home, str(home)
    authority = f"mount-{uuid.uuid4()}"
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{authority}.link./home", home.as_uri())
    return home, f"viewfs://{authority}/home"
