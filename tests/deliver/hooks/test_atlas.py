from __future__ import annotations

import base64
import socket

import httpx
import pytest

from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105
VERSION = b'{"Description": "Metadata Management", "Version": "2.1.0", "Name": "apache-atlas"}'


def atlas(connection, **fields) -> AtlasHook:
    connection("atlas_default", conn_type="atlas", **fields)
    return AtlasHook()


def test_a_login(backend, connection):
    backend.body = VERSION
    hook = atlas(connection, host=f"{backend.url}/", login="admin", password=SECRET)
    assert hook.test_connection() == (True, "Atlas 2.1.0 is reached")
    method, path, headers = backend.asked[0]
    assert (method, path, headers["Accept"]) == ("GET", "/api/atlas/admin/version", "application/json")
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == f"admin:{SECRET}"


def test_a_token(backend, connection):
    backend.body = VERSION
    hook = atlas(connection, host=backend.url, password=SECRET, extra={"headers": {"X-Team": "data"}})
    with hook.get_conn() as session:
        session.get(f"{hook.url}/api/atlas/v2/types/typedefs/headers")
    assert backend.asked[0][2]["Authorization"] == f"Bearer {SECRET}"
    assert backend.asked[0][2]["X-Team"] == "data"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("atlas:21000", "http://atlas:21000"),
        ("https://knox:8443/gateway/default/atlas/", "https://knox:8443/gateway/default/atlas"),
        ("http://atlas:21000/api/atlas", "http://atlas:21000"),
    ],
)
def test_urls(connection, host, url):
    assert atlas(connection, host=host).url == url


def test_a_session_ends(connection):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            atlas(connection, host=url, extra={"timeout_seconds": 0.2}).get_conn() as session,
            pytest.raises(httpx.ReadTimeout),
        ):
            session.get(url)


def test_certificates_that_cannot_be_read(connection):
    is_good, text = atlas(connection, host="h", extra={"verify": "/ca.pem"}).test_connection()
    assert (is_good, text) == (False, "the certificates in /ca.pem cannot be used: No such file or directory")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b"", "answered 401: the login or the password is wrong"),
        (404, b"", "answered 404: Atlas is not at this address"),
        (500, b"", "answered 500: check the URL, and Atlas' log"),
        (200, b"<html>login</html>", "answered 200, and not with Atlas' version"),
        (200, b"[]", "answered 200, and not with Atlas' version"),
        (302, b"", "answered 302"),
    ],
)
def test_what_is_wrong(backend, connection, status, body, message):
    backend.status, backend.body, backend.headers = status, body, {"Location": "/login"}
    is_good, text = atlas(connection, host=backend.url, login="admin", password=SECRET).test_connection()
    assert not is_good
    assert message in text
    assert SECRET not in text
    assert len(backend.asked) == 1


def test_nobody_there(connection):
    is_good, text = atlas(connection, host="http://127.0.0.1:1", password=SECRET).test_connection()
    assert not is_good
    assert text.startswith("http://127.0.0.1:1 cannot be reached: ")


def test_notifications(connection):
    extra = {"kind": "kafka", "sasl_mechanism": "PLAIN"}
    hook = atlas(connection, host="b1", login="me", password=SECRET, extra=extra)
    config = hook.kafka_config()
    assert (config["topic"], config["config"]["bootstrap.servers"]) == ("ATLAS_HOOK", "b1:9092")
    with pytest.raises(SettingError, match="'kind' of the connection 'atlas_default' is 'kafka'"):
        hook.get_conn()


def test_notifications_are_tried(connection):
    from confluent_kafka import Producer

    owner = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    broker = owner.list_topics(timeout=10).brokers[1]
    owner.produce("ATLAS_HOOK", b"x")
    owner.flush(10)
    hook = atlas(connection, host=f"{broker.host}:{broker.port}", extra={"kind": "kafka"})
    is_good, text = hook.test_connection()
    assert is_good
    assert text.startswith("the brokers are reached, and have the topic 'ATLAS_HOOK'; give rest_conn_id")


@pytest.mark.parametrize("extra", [{"kind": "soap"}, {"url": "x"}, {"client_key": "/k"}, {"verify": "ca.pem"}])
def test_a_connection_that_does_not_fit(connection, extra):
    is_good, text = atlas(connection, host="h", extra=extra).test_connection()
    assert not is_good
    assert f"{next(iter(extra))!r} of the connection 'atlas_default'" in text
