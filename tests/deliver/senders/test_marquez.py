"""A RUNNING event does not move the beginning of its run in Marquez."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lineage_backends.http_backend import openlineage_backend

from spark_lineage.deliver.connections import MARQUEZ, ConnectionFields, transport_config
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import sender_of

RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-000000000000"
BEGAN, NOW = "2024-01-31T12:00:00+00:00", "2024-01-31T13:00:00+00:00"


def sent(kind: str, event_type: str, airflow: dict[str, Any]) -> str:
    """Send an event by a connection, and give the time that it has in the backend."""
    return str(received(kind, event_type, {"airflow": airflow}, {})["eventTime"])


def received(kind: str, event_type: str, run_facets: dict[str, Any], job_facets: dict[str, Any], **more: Any) -> Any:
    """Send an event by a connection, and give what the backend has."""
    document = {
        "eventType": event_type,
        "eventTime": NOW,
        "producer": "https://github.com/spark-lineage/airflow-provider-spark-lineage",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": RUN_ID, "facets": run_facets},
        "job": {"namespace": "airflow", "name": "shop.load", "facets": job_facets},
        "inputs": [],
        "outputs": [],
        **more,
    }
    with openlineage_backend() as backend:
        config = transport_config(ConnectionFields("m", host=backend.url, extra={"kind": kind}))
        sender = sender_of(config)
        sender.send(
            Outgoing.of(Profile(is_marquez=config.get("backend") == MARQUEZ).encoded(json.dumps(document).encode()))
        )
        sender.close()
        (request,) = backend.received
    return request.event


def facet(schema: str, **values: Any) -> dict[str, Any]:
    """Make a facet."""
    url = f"https://openlineage.io/spec/{schema}"
    return {"_producer": "https://github.com/apache/airflow", "_schemaURL": url, **values}


AIRFLOW = facet("2-0-2/OpenLineage.json#/$defs/RunFacet")


@pytest.mark.parametrize(
    ("kind", "event_type", "began", "time"),
    [
        ("marquez", "RUNNING", BEGAN, BEGAN),
        ("marquez", "OTHER", BEGAN, BEGAN),
        ("marquez", "RUNNING", None, NOW),
        ("marquez", "START", BEGAN, NOW),
        ("marquez", "COMPLETE", BEGAN, NOW),
        ("http", "RUNNING", BEGAN, NOW),
    ],
)
def test_the_time_of_an_event(kind: str, event_type: str, began: str | None, time: str) -> None:
    assert sent(kind, event_type, AIRFLOW | {"taskInstance": {"start_date": began}}) == time


@pytest.mark.parametrize(
    ("kind", "job_type", "has_parent"),
    [("marquez", "PATH", False), ("marquez", "TASK", True), ("http", "PATH", True)],
)
def test_a_child_run_has_no_parent_there(kind: str, job_type: str, has_parent: bool) -> None:
    kinds = {"processingType": "BATCH", "integration": "SPARK", "jobType": job_type}
    of_job = facet("facets/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet", **kinds)
    job = {"namespace": "airflow", "name": "shop.load"}
    parent = facet("facets/1-1-0/ParentRunFacet.json#/$defs/ParentRunFacet", run={"runId": RUN_ID}, job=job)
    event = received(kind, "COMPLETE", {"parent": parent}, {"jobType": of_job})
    assert ("parent" in event["run"]["facets"]) is has_parent


def test_a_dataset_of_another_operator_has_a_source() -> None:
    source = facet("facets/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet", name="a", uri="s3://a")
    datasets = [
        {"namespace": "s3://lake", "name": "a"},
        {"namespace": "s3://b", "name": "b", "facets": {"dataSource": source}},
    ]
    event = received("marquez", "COMPLETE", {}, {}, inputs=datasets, outputs=datasets[:1])
    sources = [each["facets"]["dataSource"]["uri"] for each in (*event["inputs"], *event["outputs"])]
    assert sources == ["s3://lake", "s3://a", "s3://lake"]


def test_an_event_of_others_has_its_time() -> None:
    assert sent("marquez", "RUNNING", AIRFLOW) == NOW
