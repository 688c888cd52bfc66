"""What a real Data.Rentgen takes and gives back: it is how an event has to look that is to arrive there."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from confluent_kafka import Producer
from lineage_backends.data_rentgen import TOPIC, DataRentgen
from lineage_backends.recorded import RECORDED, airflow_event, task_event
from openlineage.client.uuid import generate_new_uuid

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
PARENT_JOB = {"namespace": "backends", "name": "dag"}


def dag_run(run_type: str, *, has_interval: bool = True) -> dict[str, Any]:
    ends = {"data_interval_start": NOON.isoformat(), "data_interval_end": NOON.isoformat()}
    return {"run_id": f"{run_type}__1", "run_type": run_type} | (ends if has_interval else dict.fromkeys(ends))


def event_of_task(at: datetime, told: dict[str, Any] | None) -> dict[str, Any]:
    """The terminal event of a task whose run id has the date ``at``; ``told`` is what Airflow tells of the DAG run."""
    run_id = str(generate_new_uuid(at))
    bare = task_event(next(path for path in RECORDED if path.stem == "a_414"), run_id)
    event = airflow_event(bare, run_id, told or dag_run("manual"))
    facets = event["run"]["facets"]
    facets["parent"] = {
        "run": {"runId": str(generate_new_uuid(at))},
        "job": PARENT_JOB,
        "_producer": "urn:tests",
        "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
    }
    if told is None:
        del facets["airflow"]
    return event


def send(rentgen: DataRentgen, *events: dict[str, Any]) -> None:
    producer = Producer({**rentgen.kafka.sasl(), "acks": "all", "compression.type": "zstd", "log_level": 0})
    for event in events:
        producer.produce(TOPIC, json.dumps(event).encode())
    assert producer.flush(30) == 0


def test_gives_back_inputs_outputs_and_columns(data_rentgen: DataRentgen) -> None:
    event = event_of_task(NOON, dag_run("scheduled"))
    send(data_rentgen, event)
    run = data_rentgen.ended_run(event["run"]["runId"])
    assert (run["status"], run["external_id"], run["start_reason"]) == ("SUCCEEDED", "scheduled__1", "AUTOMATIC")
    lineage = data_rentgen.lineage(event["run"]["runId"])
    assert lineage.inputs == {"file://unknown" + each["name"] for each in event["inputs"]}
    assert lineage.outputs == {"file://unknown" + each["name"] for each in event["outputs"]}
    (output,) = event["outputs"]
    told = {
        column: {(f"file://unknown{each['name']}", each["field"]) for each in fed["inputFields"]}
        for column, fed in output["facets"]["columnLineage"]["fields"].items()
    }
    assert {column: fed for (_, column), fed in lineage.columns.items()} == {
        key: fed for key, fed in told.items() if fed
    }
    assert lineage.rows == {f"file://unknown{output['name']}": output["outputFacets"]["outputStatistics"]["rowCount"]}


@pytest.mark.parametrize(
    ("told", "start_reason"),
    [
        (dag_run("manual"), "MANUAL"),
        (dag_run("backfill"), "AUTOMATIC"),
        (dag_run("dataset_triggered"), "AUTOMATIC"),
        (None, None),
    ],
    ids=["manual", "backfill", "dataset_triggered", "no facet"],
)
def test_takes(data_rentgen: DataRentgen, told: dict[str, Any] | None, start_reason: str | None) -> None:
    event = event_of_task(NOON, told)
    send(data_rentgen, event)
    assert data_rentgen.ended_run(event["run"]["runId"])["start_reason"] == start_reason


@pytest.mark.parametrize(
    "told",
    [
        dag_run("asset_triggered"),
        dag_run("asset_materialization"),
        dag_run("operator_triggered"),
        dag_run("manual", has_interval=False),
    ],
    ids=["asset_triggered", "asset_materialization", "operator_triggered", "no interval"],
)
def test_puts_aside(data_rentgen: DataRentgen, told: dict[str, Any]) -> None:
    bad, good = event_of_task(NOON, told), event_of_task(NOON, dag_run("manual"))
    send(data_rentgen, bad, good)
    data_rentgen.ended_run(good["run"]["runId"])  # the others of its batch do arrive
    assert data_rentgen.runs(bad["run"]["runId"]) == []
    assert data_rentgen.is_malformed(bad["run"]["runId"])


def test_loses_a_batch_with_a_run_of_a_day_without_partition(data_rentgen: DataRentgen) -> None:
    long_ago = NOON - timedelta(days=800)
    lost, beside = event_of_task(long_ago, dag_run("backfill")), event_of_task(NOON, dag_run("manual"))
    send(data_rentgen, lost, beside)
    later = event_of_task(NOON, dag_run("manual"))
    send(data_rentgen, later)
    data_rentgen.ended_run(later["run"]["runId"])
    assert data_rentgen.runs(lost["run"]["runId"], beside["run"]["runId"]) == []
    data_rentgen.create_partitions(long_ago.date(), long_ago.date() + timedelta(days=40))
    send(data_rentgen, lost)
    assert data_rentgen.ended_run(lost["run"]["runId"])["status"] == "SUCCEEDED"


def test_takes_events_over_http(data_rentgen: DataRentgen) -> None:
    if data_rentgen.http2kafka_url is None:
        assert data_rentgen.version == "0.3.1"  # it reads Kafka only
        return
    event = event_of_task(NOON, dag_run("manual"))
    url = f"{data_rentgen.http2kafka_url}/v1/openlineage"
    headers = {"Authorization": f"Bearer {data_rentgen.personal_token}"}
    answers = [requests.post(url, json=event, headers=each, timeout=10).status_code for each in ({}, headers)]
    assert answers == [401, 201]
    bad = event_of_task(NOON, dag_run("asset_triggered"))
    assert requests.post(url, json=bad, headers=headers, timeout=10).status_code == 422
    data_rentgen.ended_run(event["run"]["runId"])
