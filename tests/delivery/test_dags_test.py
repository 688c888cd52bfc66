"""``airflow dags test`` with a connection alone: no scheduler is there, and each DAG run has its end all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting_driver import RECORDED, waiting_connection

DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

with DAG("tested", start_date=datetime(2024, 1, 1), schedule=None):
    LineageSparkSubmitOperator(
        task_id="load", application="load.py", conn_id="spark_waiting", application_args={arguments}
    )
"""

pytestmark = pytest.mark.truth


@pytest.fixture(scope="module")
def printed(airflow: Any) -> str:
    """What two runs printed."""
    home: Path = airflow.home
    (home / "released").touch()
    source = DAG.format(arguments=[*RECORDED, str(home / "released")])
    (home / "dags" / "tested.py").write_text(source)
    connection = {"conn_type": "openlineage", "host": str(home / "events.ndjson"), "extra": {"kind": "file"}}
    airflow.env.pop("AIRFLOW__OPENLINEAGE__TRANSPORT", None)
    airflow.env |= {
        "AIRFLOW_CONN_KEPT": json.dumps(connection),
        "AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID": "kept",
        **waiting_connection(home, airflow.env),
    }
    command = [sys.executable, "-m", "airflow", "dags", "test", "tested"]
    found = ""
    for _ in range(2):
        done = subprocess.run(command, env=airflow.env, capture_output=True, text=True, timeout=300, check=False)
        found += done.stdout + done.stderr
        assert done.returncode == 0, found[-3000:]
    return found


def test_each_dag_run_has_one_start_and_then_its_end(airflow: Any, printed: str) -> None:
    runs: dict[str, list[str]] = {}
    for event in airflow.events_of("tested"):
        runs.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert list(runs.values()) == [["START", "COMPLETE"]] * 2, printed[-3000:]


def test_dag_runs_are_the_parents_of_their_tasks(airflow: Any, printed: str) -> None:
    parents = [event["run"]["facets"]["parent"]["run"]["runId"] for event in airflow.events_of("tested.load")]
    assert {*parents} == {event["run"]["runId"] for event in airflow.events_of("tested")}, printed[-3000:]


def test_second_test_of_a_date_may_end_otherwise(airflow: Any, printed: str) -> None:
    command = [sys.executable, "-m", "airflow", "dags", "test", "tested", "2026-03-03"]
    log = printed
    for fails in (True, False):
        if fails:
            (airflow.home / "released.fails").touch()
        done = subprocess.run(command, env=airflow.env, capture_output=True, text=True, timeout=300, check=False)
        log = done.stdout + done.stderr
    run_id = airflow.events_of("tested")[-1]["run"]["runId"]
    types = [event["eventType"] for event in airflow.events_of("tested") if event["run"]["runId"] == run_id]
    assert types == ["START", "FAIL", "COMPLETE"], log[-3000:]
