"""A real standalone cluster, the Python of whose executors has nothing but the standard library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fast_spark import JAVA_ENV, JAVA_OPTIONS
from lineage_backends.processes import HOST
from standalone_cluster import standalone_cluster

from spark_lineage.archive.on_executor import SHIPPED_DIRECTORY, OnExecutor, write_archive

PROGRAMS = Path(__file__).parent / "programs"
REPOSITORY = Path(__file__).parents[2]
LINES = REPOSITORY / "tests" / "fixtures" / "events" / "a_414.ndjson"
BINARIES = str(Path(sys.executable).parent)

pytestmark = [pytest.mark.spark, pytest.mark.truth]


def environment() -> dict[str, str]:
    """The environment of Spark's own commands, without anything of the user's."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK", "PYTHONPATH"))}
    path = os.pathsep.join([BINARIES, os.environ["PATH"]])
    return kept | JAVA_ENV | {"PATH": path, "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "512m"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master that has one worker."""
    folder = tmp_path_factory.mktemp("standalone")
    with standalone_cluster(folder, environment(), cores=1, memory="1g") as cluster:
        yield cluster.url


@pytest.fixture(scope="module")
def told(master: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the calls."""
    folder = tmp_path_factory.mktemp("driver")
    venv.create(folder / "bare", symlinks=True, with_pip=False)
    installed = os.pathsep.join([str(REPOSITORY / "provider"), sysconfig.get_path("platlib")])
    conf = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.task.maxFailures": "1"}
    conf["spark.executor.extraJavaOptions"] = JAVA_OPTIONS
    options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
    env = environment() | {
        "PYTHONPATH": str(REPOSITORY / "provider"),
        "PYSPARK_PYTHON": str(folder / "bare" / "bin" / "python"),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    arguments = [str(PROGRAMS / "merges.py"), LINES.as_uri(), installed, str(folder / "answer.json")]
    command = [f"{BINARIES}/spark-submit", "--master", master, *options]
    done = subprocess.run(
        [*command, str(PROGRAMS / "ships.py"), *arguments],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    answer: dict[str, Any] = json.loads((folder / "answer.json").read_text())
    return answer


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The event that ``spark-lineage merge`` makes here of the same lines."""
    merged = tmp_path_factory.mktemp("merged") / "event.json"
    arguments = ["--job-namespace", "airflow", "--job-name", "dag.task", "--run-id"]
    arguments += ["0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", "--exit-code", "0", "-o", str(merged)]
    command = [sys.executable, "-m", "spark_lineage.cli", "merge", str(LINES), *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return merged.read_text().strip()


def test_executors_without_the_package_merge_with_what_was_shipped(told: dict[str, Any], expected: str) -> None:
    assert told["bare has"] == [False, False]
    ((event, files),) = told["shipped"]
    assert event == expected
    for file in files.split():
        assert f"/{SHIPPED_DIRECTORY}/spark_lineage/" in file
    assert len(told["archives"]) == 1  # although it was asked for twice


def test_an_executor_that_cannot_import_says_where_why_and_what_to_do(told: dict[str, Any]) -> None:
    error = told["not shipped"]
    assert "ImportError: the Python of the executor on " in error
    assert "bare/bin/python" in error
    assert "cannot import merges: No module named 'spark_lineage'. It was sent nothing." in error
    assert "docs/archive.md#if-platform-or-python-differ" in error


def test_executors_that_have_the_same_version_use_their_own(told: dict[str, Any], expected: str) -> None:
    assert told["installed has"] == [True, True]
    ((event, files),) = told["the same version"]
    assert event == expected
    assert SHIPPED_DIRECTORY not in files


def test_what_was_shipped_comes_before_another_version(told: dict[str, Any], expected: str) -> None:
    ((event, files),) = told["another version"]
    assert event == expected
    for file in files.split():
        assert f"/{SHIPPED_DIRECTORY}/spark_lineage/" in file


def test_the_archive_holds_what_is_imported_and_nothing_of_airflow(tmp_path: Path) -> None:
    write_archive(tmp_path / "shipped.zip")
    names = set(zipfile.ZipFile(tmp_path / "shipped.zip").namelist())
    tops = {name.split("/")[0].split("-")[0] for name in names}
    assert {
        "spark_lineage",
        "msgspec",
        "zstandard",
        "re2",
        "openlineage",
        "attr",
        "airflow_provider_spark_lineage",
    } <= tops
    assert not {"airflow", "pyspark", "pip", "rich", "pytest"} & tops
    assert not [name for name in names if name.startswith(("/", "..")) or name.endswith(".pyc")]
    assert "spark_lineage/merge/state.py" in names


def test_in_this_process_it_calls_the_target() -> None:
    assert list(OnExecutor("itertools:chain")([1, 2])) == [1, 2]
