"""A mapped task of a stock operator, in a real Airflow with the policy: its lineage, and its links at each time."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
from airflow_home import IS_AIRFLOW_2
from lineage_backends.history_server import history_server
from policy import LINE

PROGRAM = Path(__file__).parent / "programs" / "waits.py"
DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

HOME = {home!r}

with DAG("linked", start_date=datetime(2024, 1, 1), schedule=None):
    SparkSubmitOperator.partial(
        task_id="copy",
        application={program!r},
        conf={{"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file://" + HOME + "/events"}},
    ).expand(application_args=[[HOME + "/orders.csv", HOME + "/linked", HOME + "/linked.released"]])
"""
# What the web server of Airflow 2 does; `dags test` does not store the DAG there.
LINKS_OF_AIRFLOW_2 = """
import json
from airflow.models.dagbag import DagBag
from airflow.models.taskinstance import TaskInstance
from airflow.serialization.serialized_objects import SerializedDAG
from airflow.utils.session import create_session
task = SerializedDAG.from_dict(SerializedDAG.to_dict(DagBag().dags["linked"])).get_task("copy")
with create_session() as session:
    (ti,) = session.query(TaskInstance).filter_by(dag_id="linked", map_index=0)
    print(json.dumps({name: task.get_extra_links(ti, name) or None for name in task.extra_links}))
"""

pytestmark = [pytest.mark.spark, pytest.mark.oldest, pytest.mark.shares("airflow"), pytest.mark.truth]


@pytest.fixture(scope="module")
def history(executing_airflow: Any, background: Any) -> Iterator[str]:
    """The History Server of what the drivers log."""
    events = executing_airflow.home / "events"
    events.mkdir()
    with history_server(events, executing_airflow.env, background.folder) as url:
        yield url


def links(airflow: Any, env: dict[str, str]) -> dict[str, str]:
    """The links that the page of the task instance has now, by name.

    :param env: with the policy
    """
    if IS_AIRFLOW_2:
        printed = airflow.python.run("-c", LINKS_OF_AIRFLOW_2, env=env).stdout
        found = json.loads(printed.splitlines()[-1])
    else:
        (run,) = airflow.ask("GET", "dags/linked/dagRuns")["dag_runs"]
        path = f"dags/linked/dagRuns/{quote(run['dag_run_id'], safe='')}/taskInstances/copy/links?map_index=0"
        found = airflow.ask("GET", path)["extra_links"]
    return {name: url for name, url in found.items() if url}


def answers(url: str) -> bool:
    """Whether a person gets a page there."""
    try:
        # The name of this host may not resolve.
        return requests.get(url, timeout=30).status_code == requests.codes.ok
    except requests.ConnectionError:
        return False


def test_the_links_and_the_lineage(executing_airflow: Any, background: Any, history: str, tmp_path: Path) -> None:
    airflow = executing_airflow
    (tmp_path / "airflow_local_settings.py").write_text(LINE)
    (airflow.home / "dags" / "linked.py").write_text(DAG.format(home=str(airflow.home), program=str(PROGRAM)))
    extra = {"history_server_url": history, "lineage_url": f"{history}/?{{namespace}}&{{job}}"}
    env = airflow.env | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), airflow.env["PYTHONPATH"]]),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]", "extra": extra}),
        "AIRFLOW__SPARK_LINEAGE__POLL_INTERVAL_SECONDS": "1",
    }
    background.logs.append((airflow.home / "logs" / "dag_id=linked", "**/*.log"))
    command = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "linked"]
    process = background.start("dags-test", command, env)
    background.wait_for("the program", (airflow.home / "linked" / "_SUCCESS").exists)

    background.wait_for("the UI", lambda: "Spark UI" in links(airflow, env))
    running = links(airflow, env)
    assert running.keys() == {"Spark UI", "Lineage"}, running
    assert answers(f"http://127.0.0.1:{urlsplit(running['Spark UI']).port}/jobs/")

    (airflow.home / "linked.released").touch()
    background.wait_for("the DAG run", lambda: process.poll() is not None)
    ended = links(airflow, env)
    assert ended.keys() == {"Spark history", "Lineage"}, background.tails
    assert ended["Lineage"] == running["Lineage"] == f"{history}/?test&linked.copy"
    background.wait_for("the page in the History Server", lambda: answers(ended["Spark history"]))
    (start, end) = airflow.events_of("linked.copy")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE"), background.tails
    assert [one["name"] for one in end["inputs"]] == [f"{airflow.home}/orders.csv"]
    assert [one["name"] for one in end["outputs"]] == [f"{airflow.home}/linked"]
