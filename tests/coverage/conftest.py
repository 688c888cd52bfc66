"""Fixture: an Airflow whose database has 200 parsed tasks, runs of them, and nineteen planted gaps."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow_home import _airflow_env
from tab_events import RECORDED, recorded_event

if TYPE_CHECKING:
    from warm_python import WarmPython

PROGRAMS = Path(__file__).parent / "programs"
POLICY = "from spark_lineage.policy import task_policy\n"
Installation = Callable[..., dict[str, str]]


@pytest.fixture(scope="session")
def installation(
    tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, warm_python: WarmPython
) -> Installation:
    """A function that makes an Airflow which has parsed the DAGs; it returns the environment of its commands."""

    def made(local_settings: str, **more: str) -> dict[str, str]:
        home = tmp_path_factory.mktemp("coverage")
        (home / "config").mkdir()
        (home / "config" / "airflow_local_settings.py").write_text(local_settings)
        (home / "dags").mkdir()
        shutil.copy(PROGRAMS / "installation.py", home / "dags")
        shutil.copy(airflow_database, home / "airflow.db")
        env = _airflow_env(home) | {
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__OPENLINEAGE__DISABLED_FOR_OPERATORS": "shop.operators.Silenced",
            **more,
        }
        done = warm_python.run("-m", "airflow", "dags", "reserialize", env=env, is_one_stream=True)
        assert done.returncode == 0, done.stdout
        return env

    return made


@pytest.fixture(scope="session")
def planted(installation: Installation, warm_python: WarmPython) -> dict[str, str]:
    """The environment of an Airflow with the policy, runs, and an event in its outbox that a backend refused."""
    env = installation(POLICY, AIRFLOW__SPARK_LINEAGE__POLICY_RULES="!dag:sandbox_*") | {
        "EVENT": json.dumps(recorded_event(RECORDED[0])),
        "UNDELIVERED": str(uuid.uuid4()),
    }
    done = warm_python.run("-c", (PROGRAMS / "planted_runs.py").read_text(), env=env, is_one_stream=True)
    assert done.returncode == 0, done.stdout
    return env
