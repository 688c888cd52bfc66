"""Listeners of a real job: what one does to itself, neither the job nor the others feel; and what all are told."""

from __future__ import annotations

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import bad_listeners
import pytest

PROGRAM = Path(__file__).parent / "programs" / "listened.py"
JOBS = 500
TIMEOUT_SECONDS = 15

DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}
RECORDING = "spark_lineage.listeners.ndjson_listener.NdjsonListener"

def task(task_id, **arguments):
    return LineageSparkSubmitOperator(
        task_id=task_id,
        application={program!r},
        application_args=["{jobs}"],
        conf={{
            "spark.sql.warehouse.dir": HOME + "/warehouse-" + task_id,
            # Only the event log tells of the jobs: how early a driver's UI does is luck.
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
        }},
        lineage_timeout=12 * {seconds},
        **arguments,
    )

with DAG("listeners", start_date=datetime(2024, 1, 1), schedule=None):
    bad = ["bad_listeners.Sleeping", "bad_listeners.Raising", "bad_listeners.Flooded"]
    task("alone", lineage_listeners=RECORDING) >> task("beside", lineage_listeners=[*bad, RECORDING])
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def log(airflow: Any) -> str:
    """What the DAG run printed: the same job twice, the second time with three bad listeners."""
    dags = airflow.home / "dags"
    shutil.copy(bad_listeners.__file__, dags)
    (dags / "listeners.py").write_text(
        DAG.format(home=str(airflow.home), program=str(PROGRAM), jobs=JOBS, seconds=TIMEOUT_SECONDS)
    )
    airflow.env["AIRFLOW__SPARK_LINEAGE__NDJSON_LISTENER_PATH"] = str(airflow.home / "told.ndjson")
    printed: str = airflow.command("dags", "test", "listeners")
    (airflow.home / "listeners.log").write_text(printed)
    return printed


@pytest.fixture(scope="module")
def told(airflow: Any, log: str) -> dict[str, list[dict[str, Any]]]:
    """What the listener that records was told, by task."""
    told: dict[str, list[dict[str, Any]]] = {"alone": [], "beside": []}
    for line in (airflow.home / "told.ndjson").read_text().splitlines():
        event = json.loads(line)
        told[event["task"]["task_id"]].append(event)
    return told


def of_job(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"].startswith("Job")]


def normalized(event: dict[str, Any]) -> tuple[Any, ...]:
    """What happened to what, without what is another one each time."""
    subject = event.get("subject")
    is_part = subject in {"SPARK_JOB", "SQL_EXECUTION"}
    return (
        event["event"],
        event["job_type"],
        subject,
        event["subject_id"] if is_part else None,
        event.get("old_status"),
        event.get("new_status"),
        # That it has begun, the listener and the event log say at the same time.
        event.get("source") if event.get("new_status") != "RUNNING" else None,
        event.get("detail"),
        event.get("is_end"),
    )


def test_others_are_told_the_same_as_without_the_bad_ones(told: dict[str, list[dict[str, Any]]], log: str) -> None:
    alone, beside = [list(map(normalized, of_job(told[task]))) for task in ("alone", "beside")]
    assert len(alone) > 2 * JOBS, log[-3000:]
    assert beside == alone
    assert (beside[0][0], beside[-1][-1]) == ("JobCreatedEvent", True)
    assert [event["new_status"] for event in told["beside"] if event.get("is_end")] == ["FINISHED"]


def test_what_the_bad_ones_lost_is_counted_and_logged(told: dict[str, list[dict[str, Any]]], log: str) -> None:
    count = len(told["beside"])
    lost = dict(re.findall(r"Listener bad_listeners\.(\w+) has taken \d+ events and lost (\d+): ", log))
    assert int(lost["Sleeping"]) == int(lost["Raising"]) == count, log[-3000:]
    assert 0 < int(lost["Flooded"]) < count
    assert re.findall(r"Flooded was told of a (\w+)", log) == ["JobCreatedEvent", "JobExecutionStatusEvent"]
    assert log.count("Listener bad_listeners.Raising: ValueError: password=***. It has not taken a ") == 1
    assert "NdjsonListener has taken" not in log
    assert "hunter2" not in log


def test_the_end_of_the_task_waits_for_the_one_that_sleeps_no_longer_than_it_may(
    airflow: Any, told: dict[str, list[dict[str, Any]]]
) -> None:
    start, last = airflow.events_of("listeners.beside")
    assert (start["eventType"], last["eventType"]) == ("START", "COMPLETE")
    end = of_job(told["beside"])[-1]
    waited = datetime.fromisoformat(last["eventTime"]) - datetime.fromisoformat(end["time"])
    # It sleeps for ten minutes at each event; a busy machine may take its time besides.
    assert waited.total_seconds() < TIMEOUT_SECONDS + 60


@pytest.mark.parametrize("task", ["alone", "beside"])
def test_changes_of_the_catalog_are_told_in_order(
    airflow: Any, told: dict[str, list[dict[str, Any]]], task: str
) -> None:
    warehouse = f"{airflow.home}/warehouse-{task}/shop.db"
    changes = [event for event in told[task] if not event["event"].startswith("Job")]
    assert [
        (f"{one['change']} {one['object_type']}", one["name"].removeprefix("spark_catalog."), one["is_ignored"])
        for one in changes
    ] == [
        ("CREATE DATABASE", "shop", False),
        ("CREATE TABLE", "shop.orders", False),
        ("CREATE TABLE", "shop.orders", True),
        ("ALTER TABLE", "shop.orders", False),
        ("RENAME TABLE", "shop.all_orders", False),
        ("DROP TABLE", "shop.all_orders", False),
        ("DROP DATABASE", "shop", False),
    ]
    created, altered, renamed, dropped = (changes[at] for at in (1, 3, 4, 5))
    assert created["storage"]["type"] == "path"
    assert dict(created["storage"]["properties"])["path"] == f"{warehouse}/orders"
    assert [field["name"] for field in created["schema"]] == ["order_id", "amount"]
    assert [field["name"] for field in altered["schema"]] == ["order_id", "amount", "country"]
    assert renamed["previous_name"].removeprefix("spark_catalog.") == "shop.orders"
    assert dropped["application_ids"] == created["application_ids"] != []
    times = [datetime.fromisoformat(one["time"]) for one in changes]
    assert times == sorted(times)
