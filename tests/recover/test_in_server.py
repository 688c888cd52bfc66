"""Lost tries in a real database of Airflow: found, told once, and never again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.truth

PROGRAM = Path(__file__).with_name("in_database.py")
EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "gkillmid_414.ndjson"
DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

with DAG("shop", start_date=datetime(2024, 1, 1), schedule=None, tags=["sales"], doc_md="What is sold."):
    LineageSparkSubmitOperator(task_id="load", application="load.py", owner="ann", retries=2)
"""


@pytest.fixture(scope="module")
def told(airflow: Any) -> dict[str, Any]:
    """What the program saw, in an Airflow with a DAG run whose tasks nobody runs."""
    home: Path = airflow.home
    (home / "dags" / "shop.py").write_text(DAG)
    log = airflow.command("dags", "reserialize") + airflow.command("dags", "trigger", "shop", "--run-id", "r1")
    airflow.env["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps({"type": "file", "log_file_path": str(home / "event")})
    connection = {"conn_type": "openlineage", "host": str(home / "kept.ndjson"), "extra": {"kind": "file"}}
    airflow.env["AIRFLOW_CONN_KEPT"] = json.dumps(connection)
    airflow.events_files = "event-*.json"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(EVENTS), str(home / "told.json")],
        env=airflow.env | {"_AIRFLOW_PROCESS_CONTEXT": "server"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, log + done.stdout + done.stderr
    seen: dict[str, Any] = json.loads((home / "told.json").read_text())
    lines = [json.loads(line) for line in (home / "kept.ndjson").read_text().splitlines()]
    kept = [event for event in lines if event["job"]["name"] == "shop.load"]
    seen["dag_run"] = [event for event in lines if event["job"]["name"] == "shop"]
    return seen | {"log": log + done.stdout + done.stderr, "events": airflow.events_of("shop.load"), "kept": kept}


def test_a_try_is_lost_when_it_is_over(told: dict[str, Any]) -> None:
    running, failed = told["running"], told["failed"]
    assert running == {"dag_run": [], "recent": []}, told["log"]
    assert failed == {"try": [1], "dag_run": [1], "recent": [1]}


def test_the_store_lets_one_of_many_close_it(told: dict[str, Any]) -> None:
    assert sorted(told["closed"]) == [False] * 7 + [True]


def test_two_processes_at_once_tell_one_end(told: dict[str, Any]) -> None:
    events = [one for one in told["events"] if one["run"]["runId"] == told["run_ids"]["1"]]
    assert len(events) == 1, told["log"]
    (event,) = events
    assert event["eventType"] == "FAIL"
    assert [one["name"] for one in event["outputs"]] == ["/data/lab/out/g_ok_killmid"]
    facets, job = event["run"]["facets"], event["job"]["facets"]
    assert facets["errorMessage"]["message"].startswith("set by hand ")
    assert "hunter2" not in json.dumps(event)
    assert (facets["parent"]["job"]["namespace"], facets["parent"]["job"]["name"]) == ("test", "shop")
    assert facets["airflow"]["taskInstance"]["try_number"] == 1
    assert facets["airflow"]["task"]["operator_class"] == "LineageSparkSubmitOperator"
    assert [one["name"] for one in job["ownership"]["owners"]] == ["ann"]
    assert [one["key"] for one in job["tags"]["tags"]] == ["sales"]
    assert job["documentation"]["description"] == "What is sold."
    assert job["jobType"]["jobType"] == "TASK"


def test_tab_shows_the_end_of_the_latest_try_alone(told: dict[str, Any]) -> None:
    latest = told["tab"]["latest"]
    assert latest is not None, told["log"]
    assert (latest["run_id"], latest["state"]) == (told["run_ids"]["1"], "FAIL")
    assert latest["error"].startswith("set by hand ")
    assert [one["name"] for one in latest["outputs"]] == ["/data/lab/out/g_ok_killmid"]
    assert told["tab"]["overtaken"] == latest
    assert latest["links"] == {"Spark UI": "http://driver:4040"}
    assert [one["try"] for one in (*latest["tries"], latest)] == [0, 1]


def test_nothing_is_lost_when_it_was_told(told: dict[str, Any]) -> None:
    assert told["told"] == {"try": [], "dag_run": [], "recent": []}


def test_a_try_whose_place_in_the_store_was_taken_is_found_by_its_file(told: dict[str, Any]) -> None:
    assert told["overtaken"] == {"try": [2], "dag_run": [2], "recent": [2]}


def test_a_success_by_hand_that_nothing_proves_fails_and_one_that_is_proven_is_complete(told: dict[str, Any]) -> None:
    types = {
        number: [one["eventType"] for one in told["events"] if one["run"]["runId"] == run_id]
        for number, run_id in told["run_ids"].items()
    }
    assert types == {"1": ["FAIL"], "2": ["FAIL"], "3": ["COMPLETE"], "4": ["COMPLETE"], "5": ["FAIL"]}, told["log"]


def test_the_connections_of_a_try_are_told_the_same(told: dict[str, Any]) -> None:
    assert len(told["kept"]) == 5, told["log"]
    assert sorted(map(_text, told["kept"])) == sorted(map(_text, told["events"]))


def test_a_kill_that_was_told_is_a_failure_to_whom_the_provider_may_have_told_it(told: dict[str, Any]) -> None:
    # A fork of the worker outlives it, and sends FAIL: the provider has no other word for it.
    types = [
        [(one["eventType"], one["producer"]) for one in sent if one["run"]["runId"] == told["run_ids"]["5"]]
        for sent in (told["events"], told["kept"])
    ]
    worker = "https://example.com/the-worker"
    assert types == [[("FAIL", worker)], [("ABORT", worker)]], told["log"]


def test_the_end_that_a_worker_had_written_down_is_the_one_that_is_told(told: dict[str, Any]) -> None:
    events = [one for one in told["events"] if one["run"]["runId"] == told["run_ids"]["4"]]
    assert [(one["eventType"], one["producer"]) for one in events] == [("COMPLETE", "https://example.com/the-worker")]


def _text(event: dict[str, Any]) -> str:
    # In its own transport the provider's client adds a facet that names itself, and ABORT is FAIL.
    event_type = "FAIL" if event["eventType"] == "ABORT" else event["eventType"]
    facets = {**event["run"]["facets"], "tags": None}
    return json.dumps({**event, "eventType": event_type, "run": {**event["run"], "facets": facets}}, sort_keys=True)


def test_a_connection_of_a_task_is_told_the_end_of_its_dag_run_once(told: dict[str, Any]) -> None:
    end = {
        "type": "DagRunEnd",
        "dag_id": "shop",
        "run_id": "r1",
        "conn_ids": ["kept"],
        "clear_number": 0,
        "seen_at": 0.0,
    }
    end["state"] = "failed"
    assert told["going_on"] == []
    assert told["over"] == {"by_listener": [end], "by_sweep": [end], "elsewhere": [], "told": []}, told["log"]
    assert [event["eventType"] for event in told["dag_run"]] == ["START", "FAIL"]
    start, end = told["dag_run"]
    parents = {
        one["run"]["facets"]["parent"]["run"]["runId"] for one in told["kept"] if "parent" in one["run"]["facets"]
    }
    assert {start["run"]["runId"], end["run"]["runId"]} == parents
    assert end["job"]["facets"]["jobType"]["jobType"] == "DAG"


def test_the_provider_may_be_told_to_send_nothing_of_a_task(told: dict[str, Any]) -> None:
    assert told["policy"] == {"sent": False, "left": []}


def test_the_row_of_airflow_is_not_changed(told: dict[str, Any]) -> None:
    assert told["try_number"] == 7
