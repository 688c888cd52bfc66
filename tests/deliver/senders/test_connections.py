"""What a destination is sent by."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from spark_lineage.deliver.connections import config_of, destinations_of, open_sender
from spark_lineage.deliver.http_sender import HttpSender
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105
HTTP = {"type": "http", "url": "http://127.0.0.1:1"}
KAFKA = {"type": "kafka", "topic": "t", "config": {"bootstrap.servers": "127.0.0.1:1"}}


@pytest.fixture
def connection(monkeypatch):
    """Sets a connection in the environment."""

    def give(conn_id: str, **fields) -> None:
        fields = {"conn_type": "openlineage", **fields}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    return give


def test_a_destination_is_a_connection(backend, connection, event):
    connection("marquez", host=backend.url, password=SECRET)
    assert list(destinations_of("marquez")) == ["marquez"]
    with closing(open_sender("marquez")) as sender:
        sender.send(event)
    assert backend.requests[0].headers["Authorization"] == f"Bearer {SECRET}"


def test_a_composite_has_a_destination_each(connection):
    extra = {"kind": "composite", "transports": {"a": HTTP, "b": KAFKA}}
    connection("both", extra=extra)
    assert {name: config for name, (config, _) in destinations_of("both").items()} == {"both/a": HTTP, "both/b": KAFKA}
    with pytest.raises(SettingError, match="the connection 'both' has no member 'c'; it has a, b"):
        open_sender("both/c")


def test_a_connection_whose_id_has_a_slash(connection):
    connection("team/marquez", host="http://127.0.0.1:5000")
    assert list(destinations_of("team/marquez")) == ["team/marquez"]
    assert config_of("team/marquez")["url"] == "http://127.0.0.1:5000"
    assert type(open_sender("team/marquez")) is HttpSender


def test_a_connection_that_is_not_there():
    with pytest.raises(SettingError, match=r"the connection 'nobody' cannot be read: .*nobody.* isn't defined"):
        open_sender("nobody")


def test_a_connection_of_another_type(connection):
    connection("spark", conn_type="spark", host="local")
    with pytest.raises(SettingError, match="the connection 'spark' is of type 'spark'; give one of type 'openlineage'"):
        open_sender("spark")


def test_a_connection_that_airflow_cannot_read(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", f"openlineage://:{SECRET}@http://127.0.0.1:5000")
    with pytest.raises(SettingError, match="the connection 'broken' cannot be read: ") as raised:
        open_sender("broken")
    assert SECRET not in str(raised.value)
