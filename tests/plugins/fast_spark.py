"""Fixture: an environment in which Spark starts in half the time, with the jar of the listener that it was made for.

Most of what a small job takes, a JVM spends on loading and verifying some 16,000 classes. One that has done so can
leave them in an archive (JEP 350), which those with the same class path take them from. Others pass it over.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from spark_lineage.inject.installation import SparkInstallation, find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.settings.places import DEFAULT_JAR, jar_cache

LIMIT_SECONDS = 600
PROGRAM = Path(__file__).with_name("programs") / "everyday.py"
# A JVM that lives for seconds is not worth optimizing for. It need not say that it has no use for an archive.
# Without the second compiler there is a fifth of the room for code, which a JVM of many tests fills.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC "
    "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
)
# For the JVM that finds out what to start, for a master or worker, and for spark-submit, which is the driver.
JAVA_ENV = {
    "SPARK_LAUNCHER_OPTS": JAVA_OPTIONS,
    "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
    "SPARK_SUBMIT_OPTS": JAVA_OPTIONS,
}


@dataclass(frozen=True)
class FastSpark:
    """What to add to the environment of ``spark-submit``, and ``caches`` (``XDG_CACHE_HOME``), which has the listener.

    An archive takes as long as ten drivers to make: it is made when it is asked for.
    """

    caches: Path
    _make: Callable[[str], Path]

    @property
    def jar_cache(self) -> Path:
        """Where jars that were resolved lie."""
        return jar_cache({"XDG_CACHE_HOME": str(self.caches)})

    @cached_property
    def env(self) -> dict[str, str]:
        """For a driver that has the listener on its class path."""
        return _using(self._make("listener"))

    @cached_property
    def plain_env(self) -> dict[str, str]:
        """For others; ``JAVA_ENV`` is enough where they are few."""
        return _using(self._make("plain"))


@pytest.fixture(scope="session")
def fast_spark(request: pytest.FixtureRequest) -> FastSpark:
    """Kept from one run of the tests to the next, beside what pytest keeps."""
    binaries = str(Path(sys.executable).parent)
    if shutil.which("java") is None:
        pytest.skip("Java 17 is not installed (java is not on the PATH)")
    if shutil.which("spark-submit", path=binaries) is None:
        pytest.skip(f"PySpark is not installed (no spark-submit in {binaries})")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "SPARK", "PYSPARK"))}
    path = os.pathsep.join([binaries, os.environ["PATH"]])
    env = kept | JAVA_ENV | {"PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    cache = Path(request.config.cache.mkdir("fast_spark"))  # type: ignore[union-attr]
    installation = find_installation("spark-submit", env)
    jar = resolve_jar(
        DEFAULT_JAR,
        installation=lambda: installation,
        cache_dir=jar_cache({"XDG_CACHE_HOME": str(cache)}),
        timeout_seconds=LIMIT_SECONDS,
    )
    classes = cache / _key(env, installation, Path(jar))

    def make(name: str) -> Path:
        with (cache / f"{name}.lock").open("w") as lock:
            # Another worker of pytest may be making it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (classes / name).exists():
                for old in set(cache.glob("classes-*")) - {classes}:
                    shutil.rmtree(old)
                partial = classes / f"{name}.partial"
                # Of a run of the tests that was interrupted.
                shutil.rmtree(partial, ignore_errors=True)
                _make(partial, env, jar if name == "listener" else "")
                partial.rename(classes / name)
        return classes / name / "classes.jsa"

    return FastSpark(cache, make)


def _using(archive: Path) -> dict[str, str]:
    options = f"{JAVA_OPTIONS} -XX:SharedArchiveFile={archive}" if archive.exists() else JAVA_OPTIONS
    return JAVA_ENV | {"SPARK_SUBMIT_OPTS": options}


def _key(env: dict[str, str], installation: SparkInstallation, jar: Path) -> str:
    """What an archive depends on: the JVM checks it, too, and uses none that does not fit."""
    java = subprocess.run(["java", "-version"], env=env, capture_output=True, check=True, timeout=60).stderr
    jars = [
        (str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in (jar, *installation.jars.glob("*.jar"))
    ]
    return "classes-" + hashlib.sha256(repr((java, PROGRAM.read_bytes(), sorted(jars))).encode()).hexdigest()[:16]


def _make(folder: Path, env: dict[str, str], listener: str) -> None:
    """Run a job that leaves its classes; a JVM that knows no such archives leaves none."""
    work = folder / "work"
    (work / "events").mkdir(parents=True)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(work / "events"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
    }
    if listener:
        conf |= {
            "spark.driver.extraClassPath": listener,
            "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
            "spark.openlineage.transport.type": "file",
            "spark.openlineage.transport.location": str(work / "lineage.ndjson"),
        }
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        ["spark-submit", "--master", "local[2]", *options, str(PROGRAM), str(work)],
        cwd=work,
        env=env | {"SPARK_SUBMIT_OPTS": f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={folder}/classes.jsa"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-6000:]
    shutil.rmtree(work)
