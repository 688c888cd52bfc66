"""Several backends, and connections that are mended while the task runs: no event is forgotten, no wait is repeated."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import BaseHook
from lineage_backends.http_answers import Hang

from spark_lineage.deliver.connection_sender import ConnectionSender
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.launch.log import Guard
from spark_lineage.settings import Settings
from spark_lineage.settings.places import outbox_directory

NOBODY = "http://127.0.0.1:1"


def event(event_type: str) -> bytes:
    return json.dumps({
        "eventType": event_type,
        "eventTime": "2024-01-31T12:00:00Z",
        "producer": "https://github.com/spark-lineage",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "0190a5b2-7c1e-7d5f-9d4b-000000000000"},
        "job": {"namespace": "airflow", "name": "shop.load"},
    }).encode()  # fmt: skip


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(outbox_directory(str(tmp_path)))


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Give Airflow a connection to a URL."""

    def connect(conn_id: str, url: str) -> None:
        connection = {"conn_type": "openlineage", "host": url}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))

    return connect


def sender(outbox: Outbox, *conn_ids: str, seconds: float = 5.0) -> ConnectionSender:
    settings = Settings(outbox_dir=str(outbox.directory.parent), lineage_timeout=12 * seconds)
    return ConnectionSender(conn_ids, settings, Guard(lambda: False, logging.getLogger(__name__)))


def test_put_where_one_outbox_takes_nothing_keeps_the_event_for_the_others(
    outbox: Outbox, connect: Any, openlineage_backend: Any
) -> None:
    """That of a backend that was away for long is full, and nobody sees to it."""
    outbox.directory.mkdir()
    (outbox.directory / "full").write_text("no directory")
    connect("full", openlineage_backend.url)
    connect("other", NOBODY)
    sending = sender(outbox, "full", "other")
    sending.put(Outgoing.of(event("START")), at_most_seconds=5)
    assert [each["eventType"] for each in openlineage_backend.events] == ["START"]
    assert len(outbox.spool("other").waiting()) == 1
    assert sending.deliver(5) == "1 waits in the outbox"


@pytest.mark.parametrize(("is_kept", "left"), [(True, "2 wait in the outbox"), (False, "2 are lost")])
def test_deliver_after_a_connection_was_mended_counts_what_came_before(
    outbox: Outbox, connect: Any, is_kept: bool, left: str
) -> None:
    if not is_kept:
        outbox.directory.mkdir()
        (outbox.directory / "later").write_text("no directory")
    sending = sender(outbox, "later")
    sending.put(Outgoing.of(event("START")), at_most_seconds=5)
    connect("later", NOBODY)
    sending.put(Outgoing.of(event("COMPLETE")), at_most_seconds=5)
    assert sending.deliver(5).startswith(left)


def test_deliver_again_waits_no_longer_than_in_all(outbox: Outbox, connect: Any, openlineage_backend: Any) -> None:
    openlineage_backend.always = Hang()
    connect("shop", openlineage_backend.url)
    sending = sender(outbox, "shop", seconds=2.0)
    sending.put(Outgoing.of(event("START")), at_most_seconds=5)
    began = time.monotonic()
    for _ in range(3):
        assert sending.deliver(30) == "1 waits in the outbox"
    assert time.monotonic() - began < 10


def test_connection_of_several_backends_is_read_once(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    transports = {"one": {"type": "http", "url": NOBODY}, "two": {"type": "http", "url": NOBODY}}
    given = {"conn_type": "openlineage", "extra": {"kind": "composite", "transports": transports}}
    monkeypatch.setenv("AIRFLOW_CONN_BOTH", json.dumps(given))
    read, get = list[str](), BaseHook.get_connection

    def counted(conn_id: str) -> Any:
        read.append(conn_id)
        return get(conn_id)

    monkeypatch.setattr(BaseHook, "get_connection", counted)

    assert sender(outbox, "both").destinations == ["both/one", "both/two"]
    assert read == ["both"]
