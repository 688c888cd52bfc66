"""The OpenLineage backend over HTTP, asked by openlineage-python's own transport and by a plain client."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from lineage_backends.http_answers import Answer, Close, Hang, Lose, Refuse
from lineage_backends.http_backend import ENDPOINT, OpenLineageBackend, openlineage_backend
from lineage_backends.recorded import RECORDED, task_event
from openlineage.client import OpenLineageClient
from openlineage.client.transport.http import HttpConfig, HttpTransport

from spark_lineage.deliver.stored_event import restore

if TYPE_CHECKING:
    from lineage_backends.certificates import Certificates


@pytest.fixture(scope="module")
def event() -> dict[str, Any]:
    return task_event(next(path for path in RECORDED if path.stem == "a_414"))


def post(backend: OpenLineageBackend, event: Any, **options: Any) -> requests.Response:
    return requests.post(f"{backend.url}{ENDPOINT}", json=event, timeout=options.pop("timeout", 10), **options)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_takes_a_real_event_from_the_client(openlineage_backend: Any, event: dict[str, Any], compression: Any) -> None:
    config: dict[str, Any] = {"url": openlineage_backend.url, "auth": {"type": "api_key", "apiKey": "abc"}}
    openlineage_backend.token = "abc"  # noqa: S105 (of a server that lives as long as the test)
    openlineage_backend.wants_gzip = compression is not None
    before = time.time()
    transport = HttpTransport(HttpConfig.from_dict(config | ({"compression": compression} if compression else {})))
    OpenLineageClient(transport=transport).emit(restore(json.dumps(event).encode()))
    transport.close()
    (received,) = openlineage_backend.received
    assert (received.status, received.reason, received.is_kept) == (201, "", True)
    assert before <= received.at <= time.time()
    assert openlineage_backend.events[0]["outputs"] == event["outputs"]
    assert openlineage_backend.refused == []


def test_refuses_by_schema_and_as_marquez_does(openlineage_backend: OpenLineageBackend, event: dict[str, Any]) -> None:
    bad_time = post(openlineage_backend, {**event, "eventTime": "noon"})
    assert (bad_time.status_code, "'noon' is not a 'date-time'" in bad_time.json()["message"]) == (422, True)
    assert post(openlineage_backend, {**event, "inputs": [{"namespace": "a,b", "name": "c"}]}).status_code == 400
    assert post(openlineage_backend, {**event, "job": {**event["job"], "name": "a\0b"}}).status_code == 500
    assert post(openlineage_backend, None, data=b"{", headers={"Content-Type": "application/json"}).status_code == 400
    assert post(openlineage_backend, None, data=json.dumps(event)).status_code == 415
    assert requests.post(f"{openlineage_backend.url}/elsewhere", json=event, timeout=10).status_code == 404
    assert openlineage_backend.events == []
    assert [each.status for each in openlineage_backend.refused] == [422, 400, 500, 400, 415, 404]


def test_broken_gzip_is_a_bad_request(openlineage_backend: OpenLineageBackend, event: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    whole = gzip.compress(json.dumps(event).encode())
    statuses = [
        post(openlineage_backend, None, data=body, headers=headers).status_code for body in (whole, whole[:-9], b"x")
    ]
    assert statuses == [201, 400, 400]


def test_answers_by_turns(openlineage_backend: OpenLineageBackend, event: dict[str, Any]) -> None:
    openlineage_backend.answers += [
        Refuse(status=503, retry_after="7"),
        Refuse(status=400),
        Answer(seconds=0.3),
        Close(),
        Lose(),
    ]
    refused = post(openlineage_backend, event)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "7")
    assert post(openlineage_backend, event).status_code == 400
    started = time.monotonic()
    assert post(openlineage_backend, event).status_code == 201
    assert time.monotonic() - started >= 0.3
    for _ in range(2):
        with pytest.raises(requests.ConnectionError):
            post(openlineage_backend, event)
    assert post(openlineage_backend, event).status_code == 201
    told = [(each.status, each.is_kept) for each in openlineage_backend.received]
    assert told == [(503, False), (400, False), (201, True), (None, False), (None, True), (201, True)]


def test_hangs_until_the_client_gives_up(openlineage_backend: OpenLineageBackend, event: dict[str, Any]) -> None:
    openlineage_backend.always = Hang()
    with pytest.raises(requests.ReadTimeout):
        post(openlineage_backend, event, timeout=0.3)
    openlineage_backend.always = Answer()
    assert post(openlineage_backend, event).status_code == 201
    assert [each.is_kept for each in openlineage_backend.received] == [False, True]


def test_is_dead_and_alive_again_on_one_port(openlineage_backend: OpenLineageBackend, event: dict[str, Any]) -> None:
    url = openlineage_backend.url
    openlineage_backend.stop()
    with pytest.raises(requests.ConnectionError, match="refused"):
        post(openlineage_backend, event)
    openlineage_backend.start()
    assert openlineage_backend.url == url
    assert post(openlineage_backend, event).status_code == 201


def test_asks_for_a_login(event: dict[str, Any]) -> None:
    with openlineage_backend(login=("me", "hunter2")) as backend:
        asked = [post(backend, event, auth=auth).status_code for auth in (None, ("me", "wrong"), ("me", "hunter2"))]
        assert asked == [401, 401, 201]
        url = f"{backend.url}/api/v1/namespaces"
        assert [requests.get(url, auth=auth, timeout=10).status_code for auth in (None, ("me", "hunter2"))] == [
            401,
            200,
        ]


def test_speaks_tls_and_asks_for_a_certificate(
    certificates: Certificates, event: dict[str, Any], tmp_path: Path
) -> None:
    own = (str(certificates.client), str(certificates.client_key))
    with openlineage_backend(certificates=certificates, wants_client_certificate=True) as backend:
        assert post(backend, event, verify=str(certificates.authority), cert=own).status_code == 201
        with pytest.raises(requests.exceptions.SSLError):
            post(backend, event, cert=own)
        with pytest.raises(requests.ConnectionError):
            post(backend, event, verify=str(certificates.authority))
