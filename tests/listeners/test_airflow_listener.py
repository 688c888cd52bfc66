"""Tasks whose own process could not tell their end, in a real Airflow with a scheduler.

One of them runs real Spark. The others run what only writes the events that a real driver wrote: two cores do not carry
as many drivers at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from waiting_driver import RECORDED, waiting_connection

from spark_lineage.adapters.processes import processes_of

PROGRAMS = Path(__file__).parent / "programs"
TASKS = ("killed", "retried", "marked", "lost", "abandoned")

DAG = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

def note_process(context):
    ti = context["ti"]
    Path(HOME, f"process-{{ti.task_id}}-{{ti.try_number}}").write_text(f"{{os.getpid()}} {{os.getppid()}}")

for task_id in {tasks!r}:
    released = HOME + "/released-" + task_id
    with DAG(task_id, start_date=datetime(2024, 1, 1), schedule=None):
        LineageSparkSubmitOperator(
            task_id=task_id,
            conn_id="spark_default" if task_id == "killed" else "spark_waiting",
            application={programs!r} + "/copies_then_waits.py",
            application_args=[HOME + "/orders.csv", HOME + "/copied", released]
            if task_id == "killed"
            else [*{recorded!r}, released],
            driver_memory="512m",
            retries=1 if task_id == "retried" else 0,
            retry_delay=timedelta(seconds=1),
            on_execute_callback=note_process,
        )
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def scheduling(airflow: Any, background: Any) -> Any:
    """The Airflow with API server and scheduler; a heartbeat that is 12 s old is lost."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    home: Path = airflow.home
    (home / "waiting").mkdir()
    env = airflow.env | waiting_connection(home / "waiting", airflow.env)
    env |= {
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "6",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # The driver that is left holds a socket of the supervisor, which waits for it (60 s by default).
        "AIRFLOW__WORKERS__SOCKET_CLEANUP_TIMEOUT": "2",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "12",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(home / "event")}),
    }
    (home / "dags" / "lost_tries.py").write_text(
        DAG.format(home=str(home), programs=str(PROGRAMS), recorded=RECORDED, tasks=TASKS)
    )
    serving = replace(airflow, env=env, events_files="event-*.json", api=url)
    log = serving.command("dags", "reserialize")
    background.logs.append((home / "logs", "**/*.log"))
    command = [sys.executable, "-m", "airflow"]
    background.start(
        "api-server", [*command, "api-server", "--workers", "1", "--host", "127.0.0.1", "--port", str(port)], env
    )
    background.start("scheduler", [*command, "scheduler"], env)

    def is_up() -> bool:
        health = f"{url}/api/v2/monitor/health"
        with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5) as reply:  # noqa: S310
            return bool(json.load(reply)["scheduler"]["status"] == "healthy")
        return False

    background.wait_for(f"the servers\n{log}", is_up)
    return serving


@dataclass
class Ended:
    """What is there when all is over."""

    airflow: Any
    launches: dict[str, dict[str, Any]]

    def runs(self, task: str) -> list[list[dict[str, Any]]]:
        """Return the events of a task, by run, in the order of time."""
        runs: dict[str, list[dict[str, Any]]] = {}
        for event in sorted(self.airflow.events_of(f"{task}.{task}"), key=lambda each: each["eventTime"]):
            runs.setdefault(event["run"]["runId"], []).append(event)
        return list(runs.values())


@pytest.fixture(scope="module")
def ended(scheduling: Any, background: Any) -> Ended:
    """Five tasks that have written something and wait; then none of them can tell its own end, but ``marked``."""
    airflow, home = scheduling, scheduling.home
    for task in TASKS:
        airflow.ask("POST", f"dags/{task}/dagRuns", {"dag_run_id": "r1", "logical_date": None})
    for task in TASKS:
        written = home / ("copied.written" if task == "killed" else f"released-{task}.written")
        background.wait_for(f"what {task} writes", written.exists)
    launches = {
        task: json.loads(next(home.glob(f"spark_lineage/{task}/r1/{task}/-1/1-*/launch.json")).read_text())
        for task in TASKS
    }
    assert all(processes_of(launch["application_run_id"]) for launch in launches.values())

    def noted(task: str) -> list[int]:
        return [int(each) for each in (home / f"process-{task}-1").read_text().split()]

    def mark(task: str, state: str) -> None:
        airflow.ask("PATCH", f"dags/{task}/dagRuns/r1/taskInstances/{task}", {"new_state": state})

    def terminal(task: str) -> list[str]:
        types = [event["eventType"] for event in airflow.events_of(f"{task}.{task}")]
        return [each for each in types if each in ("COMPLETE", "FAIL", "ABORT")]

    def wait_for_ends(expected: dict[str, int]) -> None:
        for task, count in expected.items():
            background.wait_for(f"the end of {task}", lambda task=task, count=count: len(terminal(task)) >= count)

    # Before all others: its worker has five seconds to tell its end, and nobody else is to need the machine then.
    mark("marked", "failed")
    wait_for_ends({"marked": 2})
    (home / "released-retried").touch()
    for task in ("killed", "retried"):
        os.kill(noted(task)[0], signal.SIGKILL)
    # With its supervisor, so that nobody tells Airflow of its end.
    for process_id in (*reversed(noted("lost")), *reversed(noted("abandoned"))):
        os.kill(process_id, signal.SIGKILL)
    mark("abandoned", "success")
    wait_for_ends({"killed": 1, "retried": 3, "lost": 2, "abandoned": 2})
    return Ended(airflow, launches)


def types(run: list[dict[str, Any]]) -> list[str]:
    """Return the types of the events of a run."""
    return [event["eventType"] for event in run if event["eventType"] != "RUNNING"]


def told(run: list[dict[str, Any]], background: Any) -> str:
    """Return the events of a run, and what everybody logged, for who has to find out what was wrong."""
    events = "\n".join(
        f"{event['eventTime']} {event['eventType']} from {event['producer']}: {sorted(event['run']['facets'])}, "
        f"{names(event, 'inputs')} -> {names(event, 'outputs')}, "
        f"{event['run']['facets'].get('sparkLineage_status', {}).get('state', 'no status')}, "
        f"{event['run']['facets'].get('errorMessage', {}).get('message', 'no error')}"
        for event in run
    )
    return f"{events}\n{background.tails}"


def names(event: dict[str, Any], side: str) -> list[str]:
    """Return the names of inputs or outputs."""
    return [dataset["name"] for dataset in event[side]]


def check_end(ended: Ended, task: str, event: dict[str, Any]) -> None:
    """Check that an event is of the try that was lost, and says what it was and how it ended."""
    facets = event["run"]["facets"]
    assert facets["sparkLineage_status"]["state"] == "FAIL"
    assert (facets["parent"]["job"]["namespace"], facets["parent"]["job"]["name"]) == ("test", task)
    assert facets["airflow"]["taskInstance"]["try_number"] == 1
    assert event["run"]["runId"] == ended.launches[task]["run_id"]
    assert event["job"]["facets"]["jobType"]["jobType"] == "TASK"
    (driver,) = [one for one in facets["sparkLineage_status"]["transitions"] if one["subject"] == "DRIVER"][-1:]
    assert driver["newStatus"] == "KILLED"
    assert "and it was ended" in facets["errorMessage"]["message"]


def check_fixture(event: dict[str, Any]) -> None:
    """Check that an event has what the driver wrote that was killed."""
    assert names(event, "inputs") == ["/data/lab/data/orders.csv"]
    assert names(event, "outputs") == ["/data/lab/out/g_ok_killmid"]
    (attempted,) = event["run"]["facets"]["sparkLineage_attemptedOutputs"]["outputs"]
    assert attempted["name"] == "/data/lab/out/g_slow"


def test_a_killed_process_without_retries_gets_the_only_end(ended: Ended, background: Any) -> None:
    (run,) = ended.runs("killed")
    # No listener of Airflow is called for it, only the sweep when its DAG run ends; but if its supervisor is so slow
    # that its heartbeat is lost, the provider sends a FAIL without lineage before ours.
    assert types(run) in (["START", "FAIL"], ["START", "FAIL", "FAIL"]), told(run, background)
    ours = [event for event in run if "sparkLineage_status" in event["run"]["facets"]]
    assert ours == run[-1:]
    check_end(ended, "killed", run[-1])
    assert names(run[-1], "inputs") == [f"{ended.airflow.home}/orders.csv"]
    assert names(run[-1], "outputs") == [f"{ended.airflow.home}/copied"]
    assert run[-1]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 20


def test_the_next_try_tells_the_end_of_the_killed_one(ended: Ended, background: Any) -> None:
    killed, retried = ended.runs("retried")
    # The first FAIL is the provider's: the executor saw the process go.
    assert types(killed) == ["START", "FAIL", "FAIL"], told(killed, background)
    assert killed[1]["outputs"] == []
    check_end(ended, "retried", killed[-1])
    check_fixture(killed[-1])
    assert types(retried) == ["START", "COMPLETE"], told(retried, background)
    assert names(retried[-1], "outputs") == ["/data/lab/out/a_parquet"]
    assert killed[-1]["eventTime"] < retried[-1]["eventTime"]


def test_a_worker_that_lives_tells_itself_that_its_task_was_marked(ended: Ended, background: Any) -> None:
    (run,) = ended.runs("marked")
    # Both are the provider's: of the API server, and of the worker, whose session was told to kill its job.
    assert types(run) == ["START", "FAIL", "FAIL"], told(run, background)
    check_fixture(run[-1])
    assert run[-1]["run"]["facets"]["sparkLineage_status"]["state"] == "ABORT"


def test_a_lost_heartbeat_is_the_end_of_its_driver(ended: Ended, background: Any) -> None:
    (run,) = ended.runs("lost")
    assert types(run) == ["START", "FAIL", "FAIL"], told(run, background)
    assert run[1]["outputs"] == []
    check_end(ended, "lost", run[-1])
    check_fixture(run[-1])


def test_a_success_by_hand_of_a_task_whose_worker_is_dead_is_none(ended: Ended, background: Any) -> None:
    (run,) = ended.runs("abandoned")
    # The COMPLETE is the provider's, of the API server, which also ended the driver that was still writing.
    assert types(run) == ["START", "COMPLETE", "FAIL"], told(run, background)
    assert run[1]["outputs"] == []
    check_end(ended, "abandoned", run[-1])
    check_fixture(run[-1])


@pytest.mark.parametrize("task", TASKS)
def test_no_process_is_left(ended: Ended, task: str) -> None:
    assert not processes_of(ended.launches[task]["application_run_id"])
