"""Whether spark-submit finds a Java that its Spark runs on."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.inject.installation import InstallationNotFoundError, find_installation

_VERSION = re.compile(r'version "(?:1\.)?(?P<major>\d+)(?P<rest>[^"]*)"')
_SECONDS = 15.0
_INSTALL = "install Java 17 (Debian: openjdk-17-jre-headless), then put java on PATH or set JAVA_HOME for the worker"
# Of "Downloading" in Spark's documentation. Hadoop's clients of Spark 4.0 and older call what Java 24 has taken out.
_SINCE_SPARK_4 = 17
_OLDEST, _NEWEST_BEFORE_SPARK_41 = 8, 23


def check_java(setup: Setup) -> Iterator[Finding]:
    """Look for ``java`` as ``bin/spark-class`` does, and ask for its version."""
    java = _java(setup.env)
    if java is None:
        yield problem("no java on PATH, and JAVA_HOME is not set: spark-submit cannot start", _INSTALL)
        return
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        yield problem(f"{java} cannot be run: {error}", _INSTALL)
        return
    version = _VERSION.search(done.stderr + done.stdout)
    if version is None:
        said = (done.stderr or done.stdout).strip().splitlines()[:1] or ["nothing"]
        yield problem(f"{java} is no Java that runs: it says {said[0]!r}", _INSTALL)
        return
    major, text = int(version["major"]), version["major"] + version["rest"]
    spark = _spark_version(setup)
    oldest = _SINCE_SPARK_4 if spark is None or spark[0] >= 4 else _OLDEST  # noqa: PLR2004 - Spark 4
    named = f"Spark {'.'.join(map(str, spark))}" if spark else "Spark 4"
    if major < oldest:
        level = problem if spark else warning
        yield level(f"Java {text} in {java} is too old: {named} needs Java {oldest} or newer", _INSTALL)
    elif spark is not None and spark < (4, 1) and major > _NEWEST_BEFORE_SPARK_41:
        yield warning(f"Java {text} in {java} is newer than what {named} runs on", "give the worker Java 17")
    else:
        yield ok(f"Java {text} in {java}")


def _java(env: Mapping[str, str]) -> str | None:
    if home := env.get("JAVA_HOME"):
        return str(Path(home) / "bin" / "java")
    return shutil.which("java", path=env.get("PATH"))


def _spark_version(setup: Setup) -> tuple[int, int] | None:
    try:
        text = find_installation(setup.spark.spark_binary, setup.env).spark_version
    except InstallationNotFoundError:
        return None
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
