"""The coverage of tasks that a real Spark has run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_home import Airflow

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.truth]


def test_real_runs_are_whole_or_say_why_not(airflow: Airflow) -> None:
    shutil.copy(PROGRAMS / "real.py", airflow.home / "dags")
    airflow.env["COVERAGE_JOB"] = str(PROGRAMS / "copy_orders.py")
    log = airflow.command("dags", "test", "real") + airflow.command("dags", "reserialize")
    done = airflow.python.run("-m", "spark_lineage.cli", "coverage", "--json", env=airflow.env)
    assert done.returncode == 0, done.stderr
    found = {one["task_id"]: (one["verdict"], one["why"]) for one in json.loads(done.stdout)["tasks"]}
    assert found.keys() == {"logged", "silent"}, log
    assert found["logged"] == ("whole", "")
    assert found["silent"] == (
        "none",
        "no event of its driver came, and no event log was to be read: see the log of the task",
    )
