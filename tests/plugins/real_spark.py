"""Fixture: the operator in a place of its own, with the real ``spark-submit`` of a PySpark."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fast_spark import JAVA_ENV, LIMIT_SECONDS

from spark_lineage.inject.installation import SparkInstallation, find_installation

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from laboratory import Bench, Outcome

_NAMED = "SPARK_LINEAGE_TRUTH_PYSPARK_3_5"
OWN = ".".join(metadata.version("pyspark").split(".")[:2])
# That of this Python, and an older one where a variable names its environment.
RELEASES = [OWN, *(["3.5"] if os.environ.get(_NAMED) else [])]


def environment(fast: FastSpark, release: str = OWN) -> dict[str, str]:
    """Return what the Spark of a release needs in its environment."""
    spark = RealSpark(None, fast, release)  # type: ignore[arg-type]
    return {
        **(fast.env if release == OWN else JAVA_ENV),
        "PATH": spark.path,
        "SPARK_HOME": str(spark.installation().home),
        "PYSPARK_PYTHON": str(spark.binaries / "python"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "XDG_CACHE_HOME": str(fast.caches),
    }


@dataclass
class RealSpark:
    """Runs Python programs with the operator, or with the stock one."""

    bench: Bench
    fast: FastSpark
    release: str = OWN

    @property
    def path(self) -> str:
        """The search path, with the commands of the PySpark in front."""
        return os.pathsep.join([str(self.binaries), os.environ["PATH"]])

    @property
    def binaries(self) -> Path:
        """Where its Python and its ``spark-submit`` are."""
        return Path(sys.executable).parent if self.release == OWN else Path(os.environ[_NAMED], "bin")

    def installation(self) -> SparkInstallation:
        """The installation of it."""
        return find_installation("spark-submit", {"PATH": self.path})

    def run(self, program: Path, *arguments: object, **others: Any) -> Outcome:
        """Run a program; ``others`` go to the operator."""
        return self.run_task(**{"application": str(program), "application_args": [*map(str, arguments)], **others})

    def run_task(self, **arguments: Any) -> Outcome:
        """Run the operator of the bench; its Spark has no UI."""
        conf = {"spark.ui.enabled": "false", **arguments.pop("conf", {})}
        return self.execute(**{**arguments, "conf": conf})

    def execute(self, **arguments: Any) -> Outcome:
        """Run the operator of the bench."""
        self.bench.env = {**environment(self.fast, self.release), **self.bench.env}
        self.bench.limit_seconds = LIMIT_SECONDS
        return self.bench.run(**{"openlineage_jar": None, **arguments})


@pytest.fixture
def real_spark(bench: Bench, fast_spark: FastSpark) -> RealSpark:
    """With the PySpark of this Python; ``release`` may be another of ``RELEASES``."""
    return RealSpark(bench, fast_spark)
