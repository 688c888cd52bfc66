"""The table of ends: each way in which a task can end, with real Spark, and what its events say then."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from airflow_home import IS_AIRFLOW_2

from spark_lineage.adapters.processes import processes_of
from spark_lineage.launch.directory import CLAIM_PREFIX

PROGRAM = Path(__file__).parent / "programs" / "ends.py"
# After which Airflow kills the process of a task that it has told to end.
AIRFLOW_SECONDS = 5.0

DAG = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

def note_process(context):
    Path(HOME, "ends", context["ti"].task_id + ".task").write_text(str(os.getpid()))

def task(mode, **arguments):
    return LineageSparkSubmitOperator(
        task_id=mode,
        application={program!r},
        application_args=[mode, HOME + "/orders.csv", HOME + "/ends"],
        conf={{"spark.master": "local[1]", **arguments.pop("conf", {{}})}},
        driver_memory="512m",
        on_execute_callback=note_process,
        **arguments,
    )

with DAG("ends", start_date=datetime(2024, 1, 1), schedule=None):
    arguments = {{
        "oom": {{"conf": {{"spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError"}}}},
        "timeout": {{"execution_timeout": timedelta(seconds=80), "poll_interval_seconds": 1, "priority_weight": 9}},
    }}
    for mode in {modes!r}:
        task(mode, **arguments.get(mode, {{}}))
"""

pytestmark = [pytest.mark.spark, pytest.mark.oldest, pytest.mark.shares("airflow"), pytest.mark.truth]


@dataclass
class End:
    """One row: what makes the task end, and what must be told of that.

    ``types`` are those of the events after START, ``driver`` the statuses that its driver goes through; ``acts`` names
    who is ended from outside, ``task``, ``python`` or ``jvm`` (which is spark-submit itself), and by what.
    """

    types: list[str]
    state: str
    driver: list[str]
    error: str = ""
    status_error: str = ""
    acts: tuple[str, int] | str = ""


FAILED = ["SUBMITTED", "FAILED"]
KILLED = ["SUBMITTED", "KILLING", "KILLED"]
ENDS = {
    "success": End(["COMPLETE"], "COMPLETE", ["SUBMITTED", "FINISHED"]),
    "caught": End(["COMPLETE"], "COMPLETE", ["SUBMITTED", "FINISHED"]),
    "task_failure": End(["FAIL"], "FAIL", FAILED, "pyspark.errors.exceptions."),
    "python_exception": End(
        ["FAIL"], "FAIL", FAILED, "RuntimeError: failed after the write, password=*** (exit code 1)"
    ),
    "sys_exit": End(["FAIL"], "FAIL", FAILED, "exit code 3"),
    "os_exit": End(["FAIL"], "FAIL", FAILED, "exit code 4"),
    "oom": End(["FAIL"], "FAIL", FAILED, "java.lang.OutOfMemoryError: Java heap space (exit code 3)"),
    "jvm_sigkill": End(
        ["FAIL"], "FAIL", FAILED, "spark-submit was killed by SIGKILL, exit code -9", acts=("jvm", signal.SIGKILL)
    ),
    "jvm_sigterm": End(
        ["FAIL"], "FAIL", FAILED, "the driver was killed by SIGTERM, exit code 143", acts=("jvm", signal.SIGTERM)
    ),
    "python_sigkill": End(
        ["FAIL"], "FAIL", FAILED, "the driver was killed by SIGKILL, exit code 137", acts=("python", signal.SIGKILL)
    ),
    "python_sigterm": End(
        ["FAIL"], "FAIL", FAILED, "the driver was killed by SIGTERM, exit code 143", acts=("python", signal.SIGTERM)
    ),
    "on_kill": End(["FAIL"], "ABORT", KILLED, "killed by Airflow (on_kill)", acts=("task", signal.SIGTERM)),
    "timeout": End(["FAIL"], "ABORT", KILLED, "Timeout", "killed by Airflow (AirflowTaskTimeout)"),
    "marked_failed": End(["FAIL", "FAIL"], "ABORT", KILLED, "killed by Airflow (on_kill)", acts="failed"),
    "marked_success": End(["COMPLETE", "FAIL"], "ABORT", KILLED, "killed by Airflow (on_kill)", acts="success"),
}
# The others are other ways to the same ends: test_airflow_listener marks a task, an example raises an exception.
# `make test-oldest` runs them all.
EVERYDAY = {"success", "task_failure", "jvm_sigkill", "on_kill", "timeout"}
# What was not finished, and why; it is beside what the others have written, too.
ATTEMPTED = {"task_failure": ("broken", "failed"), "caught": ("broken", "failed"), "timeout": ("slow", "unfinished")}
if version("pyspark").startswith("3."):
    ENDS["task_failure"].error = "py4j.protocol.Py4JJavaError: "
if IS_AIRFLOW_2:
    # Its REST API is of another kind, and the provider's facet has the words of Airflow's own exception.
    del ENDS["marked_failed"], ENDS["marked_success"]
    ENDS["on_kill"].error, ENDS["on_kill"].status_error = "Task received SIGTERM signal", "killed by Airflow (on_kill)"
MODES = [pytest.param(mode, marks=[pytest.mark.nightly] * (mode not in EVERYDAY)) for mode in ENDS]


@pytest.fixture(scope="module")
def events(request: Any, executing_airflow: Any, background: Any) -> dict[str, list[dict[str, Any]]]:
    """The events of each task that is asked for, by its id, in the order of their times."""
    home: Path = executing_airflow.home
    (home / "ends").mkdir()
    items = [item for item in request.session.items if item.path == request.path]
    modes = {item.callspec.params["mode"] for item in items if hasattr(item, "callspec")}
    if len(items) > sum(hasattr(item, "callspec") for item in items):
        modes |= {"on_kill", "timeout"}
    (home / "dags" / "ends.py").write_text(DAG.format(home=str(home), program=str(PROGRAM), modes=sorted(modes)))
    background.logs.append((home / "logs" / "dag_id=ends", "**/*.log"))
    command = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "ends"]
    background.start("dags-test-ends", command, executing_airflow.env)
    acted: set[str] = set()

    def events_of(mode: str) -> list[dict[str, Any]]:
        found = executing_airflow.events_of(f"ends.{mode}")
        return sorted(found, key=lambda event: str(event["eventTime"]))

    def is_done() -> bool:
        for mode in modes - acted:
            pids = home / "ends" / f"{mode}.pids"
            if ENDS[mode].acts and pids.exists():
                _act(executing_airflow, ENDS[mode].acts, pids)
                acted.add(mode)
        return all(len(events_of(mode)) > len(ENDS[mode].types) for mode in modes)

    background.wait_for("the end of all tasks", is_done, 600)
    return {mode: events_of(mode) for mode in modes}


def _act(airflow: Any, acts: tuple[str, int] | str, pids: Path) -> None:
    if isinstance(acts, str):
        _mark(airflow, pids.stem, acts)
        return
    who, number = acts
    python, jvm = map(int, pids.read_text().split())
    task = int(pids.with_suffix(".task").read_text())
    pids.with_suffix(".signalled").write_text(str(time.time()))
    os.kill({"python": python, "jvm": jvm, "task": task}[who], number)


def _mark(airflow: Any, task: str, state: str) -> None:
    """Do what the UI does when somebody marks a task."""
    start = airflow.events_of(f"ends.{task}")[0]
    run = start["run"]["facets"]["airflow"]["dagRun"]["run_id"]
    airflow.ask("PATCH", f"dags/ends/dagRuns/{quote(run)}/taskInstances/{task}", {"new_state": state})


@pytest.mark.parametrize("mode", MODES)
def test_the_events_say_how_the_task_ended(
    executing_airflow: Any, events: dict[str, list[dict[str, Any]]], mode: str, background: Any
) -> None:
    end, home = ENDS[mode], executing_airflow.home
    assert [event["eventType"] for event in events[mode]] == ["START", *end.types], background.tails
    (last,) = [event for event in events[mode] if "sparkLineage_status" in event["run"]["facets"]]
    facets = last["run"]["facets"]
    status = facets["sparkLineage_status"]
    assert status["state"] == end.state
    driver = [one["newStatus"] for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert driver == end.driver
    assert status.get("error", "").startswith(end.status_error or end.error)
    applications = [one for one in status["transitions"] if one["subject"] == "APPLICATION"]
    assert len({one["id"] for one in applications}) == 1
    assert applications[-1]["newStatus"] in {"FINISHED", driver[-1]}, "the application has ended"
    message = facets.get("errorMessage", {}).get("message", "")
    assert message.startswith(end.error)
    assert "hunter2" not in json.dumps(events[mode])
    outputs = [one["name"] for one in last["outputs"]]
    assert outputs == [f"{home}/ends/{mode}"], "what was finished before stays"
    assert [one["name"] for one in last["inputs"]] == [f"{home}/orders.csv"]
    attempted = facets.get("sparkLineage_attemptedOutputs", {"outputs": []})["outputs"]
    what = [(one["name"].removeprefix(f"{home}/ends/{mode}_"), one["reason"]) for one in attempted]
    assert what == [ATTEMPTED[mode]] if mode in ATTEMPTED else not what
    if mode in {"success", "jvm_sigkill"}:
        # Whether a driver that Airflow kills still says so is luck.
        assert facets["sparkLineage_application"]["applications"][0]["isEnded"] is (mode == "success")


def test_a_job_that_takes_long_names_its_datasets_while_it_runs(
    executing_airflow: Any, events: dict[str, list[dict[str, Any]]]
) -> None:
    home, (_, end) = executing_airflow.home, events["timeout"]
    told = executing_airflow.events_of("ends.timeout", is_running=True)
    running = sorted((one for one in told if one["eventType"] == "RUNNING"), key=lambda one: one["eventTime"])
    assert {event["run"]["runId"] for event in running} == {end["run"]["runId"]}
    assert [one["name"] for one in running[0]["inputs"]] == [f"{home}/orders.csv"]
    # What is left behind, only the end knows.
    assert not any(event["outputs"] for event in running)
    (file,) = home.glob("spark_lineage/ends/*/timeout/-1/1-*/openlineage-events.ndjson")
    named = [json.loads(line) for line in file.read_text().splitlines()]
    first = min(datetime.fromisoformat(event["eventTime"]) for event in named if event["inputs"])
    assert 0 < (datetime.fromisoformat(running[0]["eventTime"]) - first).total_seconds() < 8
    times = [datetime.fromisoformat(event["eventTime"]) for event in running]
    assert all((later - one).total_seconds() > 9 for one, later in pairwise(times))


def test_the_last_event_of_a_task_that_is_killed_comes_before_airflow_ends_its_process(
    executing_airflow: Any, events: dict[str, list[dict[str, Any]]], background: Any
) -> None:
    home, run_id = executing_airflow.home, events["on_kill"][-1]["run"]["runId"]
    sent = [json.loads(file.read_text()) | {"at": file.stat().st_mtime} for file in home.glob("event-*.json")]
    (at,) = [one["at"] for one in sent if one["run"]["runId"] == run_id and one["eventType"] == "FAIL"]
    signalled = float((home / "ends" / "on_kill.signalled").read_text())
    assert at - signalled < AIRFLOW_SECONDS, background.tails


@pytest.mark.parametrize("mode", MODES)
def test_no_process_is_left(executing_airflow: Any, events: dict[str, list[dict[str, Any]]], mode: str) -> None:
    (launch,) = executing_airflow.home.glob(f"spark_lineage/ends/*/{mode}/-1/*/launch.json")
    handle = json.loads(launch.read_text())
    assert processes_of(handle["application_run_id"]) == []
    # Nothing sends another end: the file is there at once, and goes when the handle has the mark.
    assert handle.get("is_closed") or list(launch.parent.glob(f"{CLAIM_PREFIX}*"))


@pytest.mark.parametrize("mode", [pytest.param("caught", marks=pytest.mark.nightly), "task_failure"])
def test_a_job_that_failed_is_told_whether_the_program_caught_it_or_not(
    events: dict[str, list[dict[str, Any]]], mode: str
) -> None:
    status = events[mode][-1]["run"]["facets"]["sparkLineage_status"]
    failed = [one for one in status["transitions"] if one["newStatus"] == "FAILED" and one["subject"] == "SPARK_JOB"]
    assert ["raise_error" in one["exception"] or "broken" in one["exception"] for one in failed] == [True]
    assert {"subject": "SPARK_JOB", "status": "FAILED", "count": 1} in status["counts"]
