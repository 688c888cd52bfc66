"""What *Test connection* says of real servers."""

from __future__ import annotations

import socket

import pytest

from spark_lineage.deliver.connections import probe

pytestmark = pytest.mark.oldest

SECRET = "hunter2hunter2"  # noqa: S105


def http(backend, **config):
    return {"type": "http", "url": backend.url, "endpoint": "/api/v1/lineage", "timeout": 1.0, **config}


@pytest.mark.parametrize(
    ("status", "is_good", "text"),
    [
        (400, True, "is reached, and refuses an empty event as it should (400)"),
        (422, True, "is reached, and refuses an empty event as it should (422)"),
        (200, True, "is reached, and takes any body (200)"),
        (301, False, "a redirect to nowhere"),
        (401, False, "the credentials are missing or wrong"),
        (403, False, "the credentials do not allow this"),
        (404, False, "check the host and the endpoint"),
        (405, False, "check the host and the endpoint"),
        (500, False, "the backend answers with an error; check its log"),
        (503, False, "the backend answers with an error; check its log"),
    ],
)
def test_http(backend, status, is_good, text):
    backend.answers(status, b"no event")
    found = probe(http(backend, compression="gzip", auth={"type": "api_key", "apiKey": SECRET}))
    assert found[0] is is_good
    assert text in found[1]
    (request,) = backend.requests
    assert (request.method, request.body, request.headers["Content-Encoding"]) == ("POST", b"", None)
    assert request.headers["Authorization"] == f"Bearer {SECRET}"


def test_a_login_page(backend):
    backend.answers(200, b"<html>log in</html>")
    is_good, text = probe(http(backend))
    assert not is_good
    assert text.startswith(f"{backend.url}/api/v1/lineage answered 200 OK with an HTML page, as a login in front")


def test_nobody_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    is_good, text = probe({"type": "http", "url": f"http://127.0.0.1:{port}"})
    assert not is_good
    assert text == f"http://127.0.0.1:{port}/api/v1/lineage: no connection: [Errno 111] Connection refused"


def test_an_unknown_authority(backends, certificates):
    is_good, text = probe(http(backends(certificates.server_context(wants_client=False))))
    assert not is_good
    assert "certificate verify failed" in text


def test_what_cannot_be_made():
    assert probe({"type": "http"}) == (
        False,
        "the transport of type 'http' has no 'url' like 'http://127.0.0.1:5000'; give one",
    )


def test_kafka():
    from confluent_kafka import Producer

    owner = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    broker = owner.list_topics(timeout=10).brokers[1]
    config = {"type": "kafka", "topic": "events", "config": {"bootstrap.servers": f"{broker.host}:{broker.port}"}}
    assert probe(config) == (
        False,
        "the brokers are reached, and show no topic 'events': create it, or allow this login to write it",
    )
    owner.produce("events", b"x")
    owner.flush(10)
    assert probe(config) == (True, "the brokers are reached, and have the topic 'events'")


def test_no_broker():
    config = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": "4000"}
    is_good, text = probe({"type": "kafka", "topic": "events", "config": config})
    assert not is_good
    assert "Connection refused" in text


def test_file(tmp_path):
    path = tmp_path / "events.ndjson"
    config = {"type": "file", "log_file_path": str(path), "append": True}
    assert probe(config) == (True, f"events are appended to {path}")
    assert not path.exists()
    config["log_file_path"] = str(tmp_path / "missing" / "events.ndjson")
    assert probe(config) == (False, f"the directory {tmp_path}/missing does not exist; create it, or give another")
    config["log_file_path"] = str(tmp_path)
    assert probe(config) == (
        False,
        f"{tmp_path} cannot be written by this process: Is a directory; change its rights, or give another",
    )


def test_a_directory_that_cannot_be_written():
    is_good, text = probe({"type": "file", "log_file_path": "/proc/events.ndjson", "append": True})
    assert not is_good
    assert text.startswith("/proc cannot be written by this process")


def test_a_file_an_event(tmp_path):
    assert probe({"type": "file", "log_file_path": str(tmp_path / "e")}) == (
        True,
        "FileTransport was made; it cannot be tried without sending an event",
    )


def test_console_and_noop():
    assert probe({"type": "console"}) == (True, "events go to the log of the task")
    assert probe({"type": "noop"})[0] is False


def test_composite(backend):
    backend.answers(422)
    members = {"good": http(backend), "bad": {"type": "http", "url": "http://127.0.0.1:1"}}
    is_good, text = probe({"type": "composite", "transports": members})
    assert not is_good
    assert f"good: {backend.url}/api/v1/lineage is reached" in text
    assert "bad: NOT GOOD: http://127.0.0.1:1/api/v1/lineage: no connection: [Errno 111] Connection refused" in text
    assert probe({"type": "composite", "transports": {"good": http(backend)}})[0]


def test_what_cannot_be_tried():
    config = {"type": "datadog", "apiKey": SECRET}
    assert probe(config) == (True, "DatadogTransport was made; it cannot be tried without sending an event")
