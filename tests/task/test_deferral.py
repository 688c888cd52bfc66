"""Tasks that a trigger waits for, without a worker; a real YARN is in ``tests/clusters``."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.triggers.base import BaseTrigger
from cluster_manager import APPLICATION_ID, DRIVER_ID, DRIVER_LINE, Cluster
from http_server import serving

from spark_lineage.launch.launch import Launch, storable
from spark_lineage.triggers.spark_application import SparkApplicationTrigger
from spark_lineage.watch import dialect

pytestmark = pytest.mark.long

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
RM_KEY = "yarn_resourcemanager_webapp_address"
YARN_LINE = f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"


@pytest.fixture
def submit(bench: Any) -> Callable[..., Any]:
    """Submits to a cluster manager that answers with these states."""

    def run(master: str, states: list[str], on_question: Any = lambda: None, **arguments: Any) -> Any:
        with Cluster(states, on_question).serving() as cluster:
            url = f"http://127.0.0.1:{cluster.port}"
            keys = {"rest-port": cluster.port, RM_KEY: url}
            bench.connection = {"conn_type": "spark", "host": master, "extra": {"deploy-mode": "cluster", **keys}}
            line = YARN_LINE if master == "yarn" else DRIVER_LINE
            outcome = bench.run(**{"log": [line], "store": {}, "deferrable": True, **arguments})
            outcome.cluster = cluster
            return outcome

    return run


def ends(outcome: Any) -> list[tuple[str, str]]:
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    return [(one["newStatus"], one["source"]) for one in status["transitions"] if one["subject"] == "DRIVER"]


BOTH = pytest.mark.parametrize(("master", "word"), [("yarn", "SUCCEEDED"), ("spark://127.0.0.1:7077", "FINISHED")])


@BOTH
def test_the_event_is_that_of_a_task_that_waits_itself(submit: Callable[..., Any], master: str, word: str) -> None:
    waits, deferred = (submit(master, [word], deferrable=one, lineage=[EVENTS]) for one in (False, True))
    assert (waits.error, deferred.error) == (None, None), deferred.printed
    assert deferred.lineage["inputs"] == waits.lineage["inputs"]
    assert deferred.lineage["outputs"] == waits.lineage["outputs"]
    assert deferred.lineage["run_facets"].keys() == waits.lineage["run_facets"].keys()
    assert ends(deferred) == ends(waits)


@BOTH
def test_what_the_trigger_has_seen_is_told(submit: Callable[..., Any], master: str, word: str) -> None:
    outcome = submit(master, ["RUNNING", word], poll_interval_seconds=60, lineage=[EVENTS])
    assert outcome.error is None
    assert [status for status, _ in ends(outcome)] == ["SUBMITTED", "RUNNING", "FINISHED"]


def test_a_driver_that_fails(submit: Callable[..., Any]) -> None:
    outcome = submit("yarn", ["FAILED"], lineage=[EVENTS], application_args=["--password", "pl41n-S3cret"])
    assert f"{APPLICATION_ID} ended with final status: FAILED. Cannot log in with apiKey=***" in outcome.error
    assert "as me/***" in outcome.error
    assert "hunter2" not in outcome.printed
    assert "pl41n-S3cret" not in f"{outcome.printed}{outcome.error}{outcome.lineage}"
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "FAIL"


@pytest.mark.parametrize("word", ["SUCCEEDED", "FAILED"])
def test_deferred_task_whose_lineage_is_turned_off_meanwhile_ends_as_its_driver(
    bench: Any, submit: Callable[..., Any], word: str
) -> None:
    bench.operator, bench.is_by_policy = "own_operators:OffWhenResumed", True
    outcome = submit("yarn", [word], post_submit_commands=[f"touch {bench.root}/done"])
    assert (outcome.error is None) == (word == "SUCCEEDED"), outcome.error
    assert outcome.lineage is None
    assert (bench.root / "done").exists()


@pytest.fixture
def sent(bench: Any, tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Returns the events that were sent to the connection ``backend``."""
    file = tmp_path / "events.json"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    bench.env["AIRFLOW_CONN_BACKEND"] = json.dumps({"conn_type": "openlineage", "extra": {"transport": transport}})
    # Each test has the same run.
    bench.env["AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR"] = str(tmp_path / "outbox")
    return lambda: [json.loads(line) for line in file.read_text().splitlines()]


def test_the_start_is_sent_once(submit: Callable[..., Any], sent: Callable[[], Any]) -> None:
    outcome = submit("yarn", ["SUCCEEDED"], lineage_conn_id="backend", lineage=[EVENTS])
    assert outcome.error is None
    assert [one["eventType"] for one in sent() if one["eventType"] != "RUNNING"] == ["START", "COMPLETE"]
    assert len({one["run"]["runId"] for one in sent()}) == 1


@BOTH
def test_what_was_read_so_far_is_sent_while_the_driver_runs(
    submit: Callable[..., Any], sent: Callable[[], Any], master: str, word: str
) -> None:
    intervals = {"tracking_interval_seconds": 0.01, "poll_interval_seconds": 0.5}
    outcome = submit(master, ["RUNNING"] * 9 + [word], lineage_conn_id="backend", lineage=[EVENTS], **intervals)
    assert outcome.error is None, outcome.printed
    start, *running, end = sent()
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert running
    assert all(one["eventType"] == "RUNNING" and one["inputs"] == end["inputs"] for one in running)
    assert len({one["run"]["runId"] for one in sent()}) == 1
    assert [status for status, _ in ends(outcome)] == ["SUBMITTED", "RUNNING", "FINISHED"]


def test_the_launch_of_a_job_that_is_waited_for_does_not_become_old(bench: Any, submit: Callable[..., Any]) -> None:
    ages: list[float] = []

    def ask() -> None:
        (file,) = bench.lineage_dir.glob("**/launch.json")
        ages.append(time.time() - file.stat().st_mtime)
        os.utime(file, (0, 0))

    intervals = {"tracking_interval_seconds": 0.01, "poll_interval_seconds": 0.5}
    outcome = submit("yarn", ["RUNNING"] * 5 + ["SUCCEEDED"], ask, lineage=[EVENTS], **intervals)
    assert outcome.error is None, outcome.printed
    assert any(age < 60 for age in ages[2:])


def test_a_timeout_kills_the_driver(submit: Callable[..., Any]) -> None:
    outcome = submit("yarn", ["RUNNING"], execution_timeout=2, lineage=[EVENTS])
    assert "AirflowTaskTimeout" in outcome.error
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT"
    assert outcome.cluster.kills == [f"/ws/v1/cluster/apps/{APPLICATION_ID}/state"]


DRIVERS = pytest.mark.parametrize(
    ("master", "driver_id", "path"),
    [
        ("yarn", APPLICATION_ID, f"/ws/v1/cluster/apps/{APPLICATION_ID}/state"),
        ("spark://127.0.0.1:7077", DRIVER_ID, f"/v1/submissions/kill/{DRIVER_ID}"),
    ],
)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[SparkApplicationTrigger, Cluster]]]:
    """Makes a trigger that waits for a driver that runs, of a task in a state that Airflow's database has."""
    with Cluster(["RUNNING"]).serving() as cluster:

        def make(state: str | None, master: str, driver_id: str) -> tuple[SparkApplicationTrigger, Cluster]:
            url = f"http://127.0.0.1:{cluster.port}"
            connection = {"conn_type": "spark", "host": master, "extra": {"rest-port": cluster.port, RM_KEY: url}}
            monkeypatch.setenv("AIRFLOW_CONN_MY_SPARK", json.dumps(connection))
            launch = Launch("", "", external_id=driver_id, conn_id="my_spark", master=master, deploy_mode="cluster")
            trigger = SparkApplicationTrigger({"launch": storable(launch)}, 10)
            assert "hunter2" not in str(trigger.serialize())
            trigger.task_instance = SimpleNamespace(current_state=lambda: state, task_id="load")  # type: ignore[assignment]
            return trigger, cluster

        yield make


@DRIVERS
@pytest.mark.parametrize("state", ["failed", "success", "running", None])
def test_whoever_kills_a_deferred_task_kills_its_driver(
    waiting: Callable[..., Any], state: str | None, master: str, driver_id: str, path: str
) -> None:
    trigger, cluster = waiting(state, master, driver_id)
    asyncio.run(trigger.on_kill())
    assert cluster.kills == [path]


@pytest.mark.parametrize(("state", "kills"), [("failed", 1), ("deferred", 0)])
def test_before_airflow_3_3_a_trigger_that_is_cancelled_looks_why(
    waiting: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, state: str, kills: int
) -> None:
    monkeypatch.delattr(BaseTrigger, "on_kill", raising=False)
    trigger, cluster = waiting(state, "yarn", APPLICATION_ID)

    async def cancel() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(trigger.run()), 1)

    asyncio.run(cancel())
    assert len(cluster.kills) == kills


def test_a_task_that_is_still_deferred_keeps_its_driver(waiting: Callable[..., Any]) -> None:
    trigger, cluster = waiting("deferred", "yarn", APPLICATION_ID)
    asyncio.run(trigger.on_kill())
    assert cluster.kills == []


def test_an_application_that_the_cluster_does_not_know_any_more(
    waiting: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dialect, "_MAX_SECONDS", 0.01)
    trigger, _ = waiting("deferred", "yarn", APPLICATION_ID)
    trigger.poll_seconds = 0.01
    with serving(partial(SimpleHTTPRequestHandler, directory=tmp_path)) as url:
        extra = {RM_KEY: url}
        monkeypatch.setenv("AIRFLOW_CONN_MY_SPARK", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
        event = asyncio.run(asyncio.wait_for(anext(trigger.run()), 20))
    assert event.payload["status"] == "UNKNOWN"
    assert "HTTP 404" in event.payload["error"]
    assert event.payload["kept"] == trigger.kept


def test_in_client_mode_the_task_waits_itself(bench: Any) -> None:
    outcome = bench.run(deferrable=True, lineage=[EVENTS])
    assert outcome.error is None
    assert "deferrable has no effect" in outcome.printed
