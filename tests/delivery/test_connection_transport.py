"""The transport of the OpenLineage provider that is a connection: everything arrives, through the outbox, once."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.openlineage.extractors import OperatorLineage
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from lineage_backends.http_answers import Answer, Refuse
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset

from spark_lineage.deliver.connection_transport import ConnectionTransport
from spark_lineage.deliver.connections import airflow_connection, airflow_transport
from spark_lineage.deliver.outbox import flush
from spark_lineage.emit.run_event import JOB_KEY, STATUS_KEY, SparkJobFacet, facet
from spark_lineage.launch.bounded_run import KILLED_SECONDS, Kill

RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-000000000000"
TRANSPORT = {"type": "spark_lineage.deliver.connection_transport.ConnectionTransport", "conn_id": "marquez"}
BEGAN = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openlineage_backend: Any) -> OpenLineageAdapter:
    """Return the provider's own maker of events, set up as the README says."""
    extra = {"kind": "marquez", "namespace": "prod"}
    connection = {"conn_type": "openlineage", "host": openlineage_backend.url, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(TRANSPORT))
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR", str(tmp_path / "outbox"))
    return OpenLineageAdapter(OpenLineageClient(config={"transport": TRANSPORT}))


def start(adapter: OpenLineageAdapter, **changes: Any) -> None:
    """Begin a task."""
    adapter.start_task(
        **{
            "run_id": RUN_ID,
            "job_name": "shop.load",
            "job_description": None,
            "event_time": BEGAN.isoformat(),
            "nominal_start_time": None,
            "nominal_end_time": None,
            "owners": None,
            "tags": None,
            "task": OperatorLineage(),
            **changes,
        }
    )


def fail(adapter: OpenLineageAdapter, lineage: OperatorLineage[Any, Any], **changes: Any) -> None:
    """End a task."""
    adapter.fail_task(
        **{
            "run_id": RUN_ID,
            "job_name": "shop.load",
            "end_time": "2024-01-31T13:00:00+00:00",
            "task": lineage,
            "nominal_start_time": None,
            "nominal_end_time": None,
            "owners": None,
            "tags": ["nightly"],
            "job_description": None,
            **changes,
        }
    )


def test_a_task_of_another_operator_arrives_in_the_namespace_of_the_connection(
    adapter: OpenLineageAdapter, openlineage_backend: Any
) -> None:
    start(adapter)
    start(adapter)
    fail(adapter, OperatorLineage())
    fail(adapter, OperatorLineage(), end_time="2024-01-31T14:00:00+00:00")
    assert [(event["eventType"], event["job"]["namespace"]) for event in openlineage_backend.events] == [
        ("START", "prod"),
        ("FAIL", "prod"),
    ]


def test_a_task_of_ours_says_what_the_provider_has_no_word_for(
    adapter: OpenLineageAdapter, openlineage_backend: Any
) -> None:
    lineage: OperatorLineage[Any, Any] = OperatorLineage(
        inputs=[InputDataset("s3://lake", "a")],
        run_facets={STATUS_KEY: facet(STATUS_KEY, state="ABORT", transitions=[], counts=[])},
        job_facets={JOB_KEY: SparkJobFacet(processingType="STREAMING", tags={"team": "sales"})},
    )
    fail(adapter, lineage)
    (event,) = openlineage_backend.events
    facets = event["job"]["facets"]
    assert event["eventType"] == "ABORT"
    assert facets["jobType"]["processingType"] == "STREAMING"
    assert [tag["key"] for tag in facets["tags"]["tags"]] == ["nightly", "team"]
    assert JOB_KEY not in facets


def test_events_wait_for_a_backend_and_for_a_connection(
    adapter: OpenLineageAdapter, openlineage_backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connection = {"conn_type": "openlineage", "host": openlineage_backend.url}
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", json.dumps(connection | {"conn_type": "http"}))
    start(adapter)
    assert openlineage_backend.received == []
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", json.dumps(connection))
    fail(adapter, OperatorLineage())
    flush(tmp_path / "outbox" / str(os.getuid()))
    assert [event["eventType"] for event in openlineage_backend.events] == ["START", "FAIL"]


def test_secrets_do_not_get_as_far_as_the_disk(
    adapter: OpenLineageAdapter, openlineage_backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", json.dumps({"conn_type": "openlineage", "host": "http://127.0.0.1:1"}))
    start(adapter, job_description="curl -H 'Authorization: Bearer hunter2'")
    kept = [path.read_bytes() for path in (tmp_path / "outbox").rglob("*") if path.is_file()]
    assert any(RUN_ID.encode() in content for content in kept)
    assert not any(b"hunter2" in content for content in kept)


def test_an_event_that_cannot_be_kept_is_sent_at_once(
    adapter: OpenLineageAdapter, openlineage_backend: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "outbox").write_text("no directory")
    start(adapter)
    assert [event["eventType"] for event in openlineage_backend.events] == ["START"]
    assert "WARNING" not in caplog.text


def test_an_end_that_cannot_be_kept_comes_after_its_start(
    adapter: OpenLineageAdapter, openlineage_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    openlineage_backend.always = Refuse(retry_after="1")
    start(adapter)
    openlineage_backend.always = Answer()
    monkeypatch.setattr("spark_lineage.deliver.spool.FREE_BYTES", 1 << 60)
    # As long as the backend has asked for.
    time.sleep(2.5)
    fail(adapter, OperatorLineage())
    assert [event["eventType"] for event in openlineage_backend.events] == ["START", "FAIL"]


def test_it_is_known_where_airflow_sends_to(adapter: OpenLineageAdapter, openlineage_backend: Any) -> None:
    assert airflow_connection() == "marquez"
    assert airflow_transport()["url"] == openlineage_backend.url


@pytest.mark.parametrize("config", [{}, {"conn_id": ""}, {"conn_id": 3}])
def test_a_transport_without_a_connection_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match='give "conn_id"'):
        ConnectionTransport.config_class.from_dict(config)


def test_the_end_of_a_task_that_is_killed_does_not_wait_for_a_backend_longer_than_the_kill(
    adapter: OpenLineageAdapter, openlineage_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(adapter)
    openlineage_backend.always = Answer(seconds=30.0)
    monkeypatch.setattr(Kill, "of_process", Kill())
    Kill.of_process.request("on_kill")
    began = time.monotonic()
    fail(adapter, OperatorLineage())
    assert time.monotonic() - began < KILLED_SECONDS + 1
