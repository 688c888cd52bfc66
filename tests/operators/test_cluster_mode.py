"""Tasks whose drivers run on a real standalone cluster: one is killed, and one re-attaches in its next try."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from standalone_cluster import StandaloneCluster, compiled, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_spark import FastSpark

PROGRAM = Path(__file__).parent / "programs" / "SlowCopy.java"

# After which Airflow kills the process of a task that it has told to end.
AIRFLOW_SECONDS = 5.0

DAG = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r} + "/cluster"

def note_process(context):
    ti = context["ti"]
    Path(HOME, f"{{ti.task_id}}-{{ti.try_number}}").write_text(str(os.getpid()))

def task(task_id, **arguments):
    LineageSparkSubmitOperator(
        task_id=task_id,
        conn_id="spark_cluster",
        application={program!r},
        java_class="SlowCopy",
        application_args=[{home!r} + "/orders.csv", f"{{HOME}}/{{task_id}}", HOME + "/released"],
        driver_memory="512m",
        executor_memory="512m",
        total_executor_cores=1,
        openlineage_jar={listener!r},
        on_execute_callback=note_process,
        **arguments,
    )

with DAG("cluster", start_date=datetime(2024, 1, 1), schedule=None):
    task("reattached", retries=1, retry_delay=timedelta(seconds=0))
    # The provider would not see in time that the driver is gone.
    task("killed", status_poll_interval=60, poll_interval_seconds=1)
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth, pytest.mark.shares("airflow")]


@pytest.fixture(scope="module")
def cluster(executing_airflow: Any, background: Any) -> Iterator[StandaloneCluster]:
    """A master that has one worker."""
    background.logs += [(background.folder, "master-*.log"), (background.folder, "worker.log")]
    background.logs.append((background.folder / "work", "driver-*/std*"))
    env = executing_airflow.env | {"SPARK_DAEMON_MEMORY": "512m"}
    with standalone_cluster(background.folder, env, cores=4, memory="3g") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as a jar: standalone clusters run no Python in cluster mode."""
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed (javac is not on the PATH)")
    return compiled(PROGRAM, tmp_path_factory.mktemp("program"))


@dataclass
class Ran:
    """What is known of both tasks: the logs of their tries, the ids of their drivers, and how long the kill took."""

    logs: list[str]
    drivers: dict[str, str]
    seconds: float
    cluster: StandaloneCluster

    def state(self, task: str) -> str:
        """Return what the master says of the driver of a task."""
        page = self.cluster.page()
        states = {one["id"]: one["state"] for one in (*page["activedrivers"], *page["completeddrivers"])}
        assert states.keys() == set(self.drivers.values()), "no other driver was submitted"
        return str(states[self.drivers[task]])


@pytest.fixture(scope="module")
def ran(
    executing_airflow: Any, background: Any, cluster: StandaloneCluster, program: Path, fast_spark: FastSpark
) -> Ran:
    """One task was killed; of the other the process of the first try, and its driver ended during the second."""
    home: Path = executing_airflow.home
    (home / "cluster").mkdir()
    extra = {"deploy-mode": "cluster", "rest-port": cluster.rest_port, "master_ui_url": cluster.ui_url}
    connection = {"conn_type": "spark", "host": cluster.url, "extra": extra}
    # As a path: what is in the worker's own cache would not be handed to a driver elsewhere.
    listener = str(next(fast_spark.jar_cache.rglob("openlineage-spark_2.13-*.jar")))
    (home / "dags" / "cluster.py").write_text(DAG.format(home=str(home), program=str(program), listener=listener))
    background.logs.append((home / "logs" / "dag_id=cluster", "**/*.log"))
    command = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "cluster"]
    env = executing_airflow.env | {"AIRFLOW_CONN_SPARK_CLUSTER": json.dumps(connection)}
    background.start("dags-test", command, env)

    def log(task: str, try_number: int) -> str:
        files = home.glob(f"logs/dag_id=cluster/*/task_id={task}/attempt={try_number}.log")
        return "".join(file.read_text(errors="replace") for file in files)

    def submitted(task: str) -> str:
        # By then the provider has stored the driver's id.
        found = background.wait_for(
            f"the submission of {task}", lambda: re.search(r"Polling driver (\S+) until completion", log(task, 1))
        )
        background.wait_for(f"the copy of {task}", (home / "cluster" / task / "_SUCCESS").exists)
        return str(found[1])

    drivers = {task: submitted(task) for task in ("killed", "reattached")}
    ran = Ran([], drivers, 0.0, cluster)
    # The lineage of the copies has been read, and the drivers were seen to run.
    time.sleep(3)
    assert {ran.state(task) for task in drivers} == {"RUNNING"}, background.tails

    signalled = time.time()
    os.kill(int((home / "cluster" / "killed-1").read_text()), signal.SIGTERM)
    (end,) = background.wait_for("the end of killed", lambda: _files(home, "cluster.killed", "FAIL"))
    ran.seconds = end.stat().st_mtime - signalled
    background.wait_for("the end of its driver", lambda: ran.state("killed") != "RUNNING")

    os.kill(int((home / "cluster" / "reattached-1").read_text()), signal.SIGKILL)
    background.wait_for("the second try", lambda: "Reconnecting to existing job" in log("reattached", 2))
    assert ran.state("reattached") == "RUNNING", background.tails
    (home / "cluster" / "released").touch()
    # Not for its process: one of the LocalExecutor's, whose task was killed, may keep it from ending.
    dags_test = background.folder / "dags-test.log"
    background.wait_for("the DAG run", lambda: "DagRun Finished" in dags_test.read_text(errors="replace"))
    # Under load, the DAG run may end before the process of its last task does.
    background.wait_for("the end of reattached", lambda: _files(home, "cluster.reattached", "COMPLETE"))
    ran.logs = [log("reattached", 1), log("reattached", 2)]
    return ran


def _files(home: Path, job: str, event_type: str) -> list[Path]:
    events = {file: json.loads(file.read_text()) for file in home.glob("event-*.json")}
    return [file for file, one in events.items() if (one["job"]["name"], one["eventType"]) == (job, event_type)]


def test_the_driver_of_a_task_that_is_killed_is_killed_on_the_master(ran: Ran, background: Any) -> None:
    assert ran.state("killed") == "KILLED", background.tails


def test_the_event_of_a_task_that_is_killed_says_so_and_comes_in_time(
    executing_airflow: Any, ran: Ran, background: Any
) -> None:
    events = sorted(executing_airflow.events_of("cluster.killed"), key=lambda event: str(event["eventTime"]))
    assert [event["eventType"] for event in events] == ["START", "FAIL"], background.tails
    status = events[-1]["run"]["facets"]["sparkLineage_status"]
    assert (status["state"], status["error"]) == ("ABORT", "killed by Airflow (on_kill)")
    driver = [one["newStatus"] for one in status["transitions"] if one["subject"] == "DRIVER"]
    # The master may not have heard yet of the end.
    assert driver[:3] == ["SUBMITTED", "RUNNING", "KILLING"]
    assert driver[3:] in ([], ["KILLED"])
    assert [one["name"] for one in events[-1]["outputs"]] == [f"{executing_airflow.home}/cluster/killed"]
    assert ran.seconds < AIRFLOW_SECONDS, background.tails


def test_the_second_try_takes_over_the_only_driver(ran: Ran, background: Any) -> None:
    assert ran.state("reattached") == "FINISHED", background.tails
    assert "SIGKILL" in ran.logs[0]
    assert all(f"Polling driver {ran.drivers['reattached']} until completion" in log for log in ran.logs)


def test_its_event_has_the_lineage_of_the_job_that_the_killed_try_submitted(
    executing_airflow: Any, ran: Ran, background: Any
) -> None:
    home: Path = executing_airflow.home
    runs: dict[str, list[dict[str, Any]]] = {}
    for event in executing_airflow.events_of("cluster.reattached"):
        runs.setdefault(event["run"]["runId"], []).append(event)
    types = [[event["eventType"] for event in run] for run in runs.values()]
    # The first FAIL is Airflow's own, without lineage: the process that was killed could not report its end. The second
    # is that of our listener, when the next try begins.
    assert types == [["START", "FAIL", "FAIL"], ["START", "COMPLETE"]], background.tails
    (killed, (_, fail, told)), (_, (_, complete)) = runs.items()
    assert (fail["inputs"], fail["outputs"]) == ([], [])
    assert "still runs (RUNNING)" in told["run"]["facets"]["errorMessage"]["message"]
    assert [dataset["name"] for dataset in told["outputs"]] == [f"{home}/cluster/reattached"], "it was finished by then"

    assert [dataset["name"] for dataset in complete["inputs"]] == [f"{home}/orders.csv"], background.tails
    (output,) = complete["outputs"]
    assert output["name"] == f"{home}/cluster/reattached"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 20
    (launch,) = home.glob("spark_lineage/cluster/*/reattached/-1/*")  # the second try made none
    assert launch.name.startswith("1-")
    lines = (launch / "openlineage-events.ndjson").read_text().splitlines()
    assert json.loads(lines[0])["run"]["facets"]["parent"]["run"]["runId"] == killed
    counts = complete["run"]["facets"]["sparkLineage_collection"]
    assert (counts["linesRead"], counts["linesSetAside"]) == (len(lines), 0)


def test_its_event_tells_the_way_of_the_driver_as_the_master_does(
    executing_airflow: Any, ran: Ran, background: Any
) -> None:
    complete = executing_airflow.events_of("cluster.reattached")[-1]
    status = complete["run"]["facets"]["sparkLineage_status"]
    way = [one for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert {one["id"] for one in way} == {ran.drivers["reattached"]}
    statuses = [one["newStatus"] for one in way]
    assert statuses[:3] == ["SUBMITTED", "RUNNING", "REATTACHED"]
    # It may end before anybody has seen it run again.
    assert statuses[3:] in (["FINISHED"], ["RUNNING", "FINISHED"])
    told = [(one["id"], one["newStatus"]) for one in status["transitions"] if one["subject"] == "APPLICATION"]
    applications = {one["id"]: one["state"] for one in ran.cluster.page()["completedapps"]}
    assert {name for name, _ in told} == {told[-1][0]}
    assert told[-1][1] == applications[told[-1][0]] == "FINISHED"
    assert status["state"] == "COMPLETE"
