"""A RUNNING event does not move the beginning of its run in Marquez."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lineage_backends.http_backend import openlineage_backend

from spark_lineage.emit.stored_event import restore
from spark_lineage.emit.transports.config import transport_config
from spark_lineage.emit.transports.fields import ConnectionFields
from spark_lineage.emit.transports.opening import make_transport

BEGAN, NOW = "2024-01-31T12:00:00+00:00", "2024-01-31T13:00:00+00:00"


def sent(kind: str, event_type: str, airflow: dict[str, Any]) -> str:
    """Send an event by a connection, and give the time that it has in the backend."""
    document = {
        "eventType": event_type,
        "eventTime": NOW,
        "producer": "https://github.com/spark-lineage/airflow-provider-spark-lineage",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "0190a5b2-7c1e-7d5f-9d4b-000000000000", "facets": {"airflow": airflow}},
        "job": {"namespace": "airflow", "name": "shop.load"},
        "inputs": [],
        "outputs": [],
    }
    with openlineage_backend() as backend:
        transport = make_transport(transport_config(ConnectionFields("m", host=backend.url, extra={"kind": kind})))
        transport.emit(restore(json.dumps(document).encode()))
        (received,) = backend.received
    return str(received.event["eventTime"])


AIRFLOW = {
    "_producer": "https://github.com/apache/airflow",
    "_schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet",
}


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


def test_an_event_of_others_has_its_time() -> None:
    assert sent("marquez", "RUNNING", AIRFLOW) == NOW
