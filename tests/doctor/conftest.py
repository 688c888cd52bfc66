"""Patients that are made by hand, and backends and endpoints on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.doctor.setup import Setup
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    from warm_python import WarmPython


@pytest.fixture
def setup(tmp_path: Path) -> Callable[..., Setup]:
    """Make a setup; ``env`` is all that spark-submit gets, without the PATH of this process."""

    def make(
        *,
        env: Mapping[str, str] = {},
        extra: Mapping[str, Any] = {},
        master: str = "local[2]",
        has_connection: bool = True,
        **settings: Any,
    ) -> Setup:
        return Setup(
            conn_id="my_spark",
            master=master,
            places=Places({}, extra, has_connection=has_connection),
            settings=Settings(
                **{"lineage_dir": str(tmp_path / "lineage"), "outbox_dir": str(tmp_path / "out")} | settings
            ),
            conn_ids=(),
            env={"PATH": str(tmp_path / "bin"), **env},
        )

    return make


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """Make an executable on the PATH of the setup, which prints a text to standard error."""

    def make(name: str, text: str = "", directory: Path = tmp_path / "bin") -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / name
        file.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
        file.chmod(0o755)
        return file

    return make


@pytest.fixture
def spark_home(tmp_path: Path) -> Callable[..., Path]:
    """Make what looks like a Spark from outside."""

    def make(version: str = "3.5.1", scala: str = "2.12") -> Path:
        home = tmp_path / f"spark-{version}"
        (home / "jars").mkdir(parents=True)
        (home / "jars" / f"spark-core_{scala}-{version}.jar").touch()
        return home

    return make


@pytest.fixture
def doctor(tmp_path: Path, warm_python: WarmPython) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a process of its own, in an Airflow of its own, where all is well unless ``env`` says else."""

    def run(*arguments: str, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE"))}
        spark = json.dumps({"conn_type": "spark", "host": "local[2]"})
        defaults = {
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW_CONN_SPARK_DEFAULT": spark,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        clean.pop("SPARK_HOME", None)
        return warm_python.run("-m", "spark_lineage.cli", "doctor", *arguments, env={**clean, **defaults, **env})

    return run
