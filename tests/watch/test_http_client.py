from __future__ import annotations

import asyncio
import gzip
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from dialogues import http_connection
from msgspec import Struct

from spark_lineage import http_client
from spark_lineage.http_client import (
    Access,
    AsyncHttpClient,
    HttpClient,
    NoAnswerError,
    Request,
    origin_of,
    place_of,
    proxy_of,
)
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints

SECRET = "s3cr3t"  # noqa: S105 - planted


class Pair(Struct):
    name: str
    number: int = 0


def no_answer(client: HttpClient, url: str, shape: Any = Any) -> NoAnswerError:
    with pytest.raises(NoAnswerError) as caught:
        get_json(client, url, shape)
    # Airflow logs tracebacks: the chain must hold no secret either.
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))
    return caught.value


def test_json_is_decoded_as_its_shape(loopback: Any) -> None:
    url = loopback.reply("/a", json={"name": "x", "number": "7", "more": [1]})
    client = HttpClient()
    assert get_json(client, url) == {"name": "x", "number": "7", "more": [1]}
    assert get_json(client, url, Pair) == Pair("x", 7)
    assert loopback.asked[0][1]["Accept"] == "application/json, text/json"
    assert asyncio.run(AsyncHttpClient().send(Request(url))) == client.send(Request(url))


def test_compressed_json_is_read(loopback: Any) -> None:
    url = loopback.reply("/a", body=gzip.compress(b'{"name": "x"}'), headers={"Content-Encoding": "gzip"})
    assert get_json(HttpClient(), url, Pair) == Pair("x")


def test_a_connection_is_kept(loopback: Any) -> None:
    url = loopback.reply("/a", json=[])
    client = HttpClient()
    for _ in range(5):
        get_json(client, url)
    assert len(loopback.connections) == 1
    client.close()


@pytest.mark.parametrize(
    ("answer", "text", "status"),
    [
        ({"status": 404, "body": b"password=s3cr3t"}, "answered HTTP 404", 404),
        ({"status": 503, "json": {}}, "answered HTTP 503", 503),
        ({"status": 401, "headers": {"WWW-Authenticate": "Basic"}}, "answered HTTP 401", 401),
        ({"status": 204, "body": b""}, "answered HTTP 204", 204),
        (
            {"body": b"<html>s3cr3t</html>", "content_type": "text/html; charset=utf-8"},
            "not JSON, or only a part of it (a login page?)",
            200,
        ),
        ({"body": b"This is standby RM: s3cr3t", "content_type": "text/plain"}, "not JSON", 200),
        ({"body": b""}, "not JSON", 200),
        ({"body": b'{"name": "s3cr3t'}, "not JSON, or only a part of it", 200),
        ({"body": b'{"name": "\xff"}'}, "not JSON", 200),
        ({"body": b'{"name": "x"}', "missing_bytes": 10}, "a damaged answer", None),
        ({"body": b"no gzip", "headers": {"Content-Encoding": "gzip"}}, "a damaged answer", None),
        ({"body": b'{"more": ' + b"[" * 100_000}, "not JSON", 200),
        ({"json": ["s3cr3t"]}, "JSON of another shape", 200),
        ({"json": {"number": 1}}, "missing required field `name`", 200),
        ({"json": {"name": "x", "number": "s3cr3t"}}, "JSON of another shape", 200),
        ({"json": None}, "JSON of another shape", 200),
    ],
)
def test_what_is_no_answer(loopback: Any, answer: dict[str, Any], text: str, status: int | None) -> None:
    error = no_answer(HttpClient(), loopback.reply("/a", **answer), Pair)
    assert text in str(error)
    assert f"{loopback.url}/a" in str(error)
    assert error.http_status == status


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = no_answer(HttpClient(), f"{url}/a?token=s3cr3t")
    assert str(error) == f"{url}/a: Connection refused"
    assert error.http_status is None


def test_an_answer_that_does_not_come(loopback: Any) -> None:
    url = loopback.reply("/a", json={}, seconds=2)
    began = time.monotonic()
    assert "no answer in time" in str(no_answer(HttpClient(seconds=0.4), url))
    assert time.monotonic() - began < 1


@pytest.fixture(
    params=[
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA:",
    ]
)
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """A URL whose answer comes a byte at a time, for 5 s: its body, or a header."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(request.param)
                for _ in range(100):
                    connection.sendall(b" ")
                    time.sleep(0.05)

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a"
        assert 0.3 < time.monotonic() - began < 2
        thread.join()


def test_an_answer_that_drips(dripping: str) -> None:
    error = no_answer(HttpClient(seconds=0.8), dripping)
    assert "took too long" in str(error) or "no answer in time" in str(error)


def test_an_answer_that_drips_to_a_trigger(dripping: str) -> None:
    with pytest.raises(NoAnswerError, match="no answer in time"):
        asyncio.run(AsyncHttpClient(seconds=0.8).send(Request(dripping)))


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_that_is_too_large(loopback: Any, monkeypatch: pytest.MonkeyPatch, compressed: bool) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1024 * 1024)
    body = b" " * 3_000_000
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    url = loopback.reply("/a", body=gzip.compress(body) if compressed else body, headers=headers)
    assert "more than 1 MB" in str(no_answer(HttpClient(), url))


@pytest.mark.parametrize(
    "url", ["", "localhost", "ftp://h/a", "http://", "http://[::1/a", "http://h:port/a", "file:///a"]
)
def test_what_is_no_url(url: str) -> None:
    no_answer(HttpClient(), url)


def test_a_redirect_is_not_followed_wherever_it_leads(loopback: Any) -> None:
    for headers in ({}, {"Location": ""}, {"Location": "/a"}, {"Location": "ftp://h"}):
        url = loopback.reply("/a", status=307, headers=headers)
        assert str(no_answer(HttpClient(), url)) == f"{url} answered HTTP 307"
    assert len(loopback.asked) == 4


def test_the_body_of_a_redirect_is_not_read(loopback: Any) -> None:
    headers = {"Location": "http://h/"}
    url = loopback.reply("/a", status=302, headers=headers, body=b" ", missing_bytes=10**9)
    assert "HTTP 302, a redirect to http://h:80" in str(no_answer(HttpClient(), url))


def test_no_redirect_to_another_host_is_followed(loopbacks: Callable[[], Any]) -> None:
    ours, others = loopbacks(), loopbacks()
    target = others.reply("/login", json={})
    url = ours.reply("/a", status=302, headers={"Location": f"{target}?token=s3cr3t"})
    client = HttpClient({origin_of(ours.url): Access(httpx.BasicAuth("me", SECRET))})
    error = no_answer(client, url)
    assert f"a redirect to {others.url}" in str(error)
    assert not others.asked


def test_credentials_go_to_named_hosts_only(loopbacks: Callable[[], Any]) -> None:
    named, driver = loopbacks(), loopbacks()
    client = HttpClient({origin_of(named.url): Access(httpx.BasicAuth("me", SECRET))})
    for server in (named, driver):
        get_json(client, server.reply("/a", json={}))
    assert named.asked[0][1]["Authorization"] == "Basic bWU6czNjcjN0"
    assert driver.asked[0][1]["Authorization"] is None


def test_cookies_do_not_go_to_another_port(loopbacks: Callable[[], Any]) -> None:
    manager, driver = loopbacks(), loopbacks()
    client = HttpClient()
    url = manager.reply("/a", json={}, headers={"Set-Cookie": "hadoop.auth=s3cr3t; Path=/"})
    get_json(client, url)
    get_json(client, url)
    get_json(client, driver.reply("/a", json={}))
    assert [headers["Cookie"] for _, headers in manager.asked] == [None, "hadoop.auth=s3cr3t"]
    assert driver.asked[0][1]["Cookie"] is None


def test_neither_netrc_nor_proxy_is_used_on_the_loopback(
    loopback: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password s3cr3t\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert get_json(HttpClient(), loopback.reply("/a", json=[1])) == [1]
    assert loopback.asked[0][1]["Authorization"] is None


def test_other_hosts_are_asked_through_the_proxy(loopback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", loopback.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    loopback.reply("http://spark.invalid/a", json=[1])
    assert get_json(HttpClient(), "http://spark.invalid/a") == [1]


def test_a_trigger_sends_no_cookie(loopback: Any) -> None:
    url = loopback.reply("/a", json={}, headers={"Set-Cookie": "hadoop.auth=s3cr3t; Path=/"})

    async def twice() -> None:
        for _ in range(2):
            await AsyncHttpClient().send(Request(url))

    asyncio.run(twice())
    assert [headers["Cookie"] for _, headers in loopback.asked] == [None, None]
    assert len(loopback.connections) == 1, "all jobs share it"


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_through"),
    [
        ("http://spark.example/a", "", True),
        ("https://spark.example/a", "", False),
        ("http://spark.example/a", "example", False),
        ("http://spark.example/a", ".example", False),
        ("http://example/a", ".example", False),
        ("http://spark.example:81/a", "spark.example:82", True),
        ("http://spark.example:81/a", "spark.example:81", False),
        ("http://10.1.2.3/a", "10.1.0.0/16", False),
        ("http://10.2.2.3/a", "10.1.0.0/16, 10.1.2.3", True),
        ("http://10.2.2.3/a", "*", False),
        ("http://127.8.0.1/a", "", False),
        ("http://[::1]:80/a", "", False),
        ("http://localhost:80/a", "", False),
    ],
)
def test_no_proxy_is_read_as_requests_reads_it(
    monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str, is_through: bool
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert proxy_of(url) == ("http://proxy:3128" if is_through else None)
    # Of requests itself, but for the loopback.
    from requests.utils import get_environ_proxies

    if "127." not in url and "[" not in url and "localhost" not in url:
        assert bool(get_environ_proxies(url, no_proxy=None)) == is_through or url.startswith("https")


def test_credentials_of_the_http_connection(loopbacks: Callable[[], Any]) -> None:
    named, other = loopbacks(), loopbacks()
    for connection, sent in [
        (http_connection("me", SECRET), "Basic bWU6czNjcjN0"),
        (http_connection(None, SECRET), f"Bearer {SECRET}"),
        (http_connection(headers={"Authorization": "Token x"}), "Token x"),
        (http_connection("me", SECRET, host="elsewhere"), None),
        (http_connection("me", SECRET, host="http://127.0.0.1:1/x"), "Basic bWU6czNjcjN0"),
    ]:
        endpoints = Endpoints("local", "client", {"history_server_url": named.url}, connection)
        for server in (named, other):
            endpoints.client().send(Request(server.reply("/a", json={})))
        assert named.asked[-1][1]["Authorization"] == sent
        assert other.asked[-1][1]["Authorization"] is None


def test_kerberos_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx_gssapi", None)
    with pytest.raises(SettingError, match="needs the package httpx-gssapi"):
        Endpoints("local", "client", {}, http_connection(kerberos=True))


def test_no_secret_is_shown() -> None:
    assert "s3cr3t" not in repr(Access(httpx.BasicAuth("me", SECRET)))
    assert place_of("https://me:s3cr3t@Host/a/b?token=s3cr3t#s3cr3t") == "https://host:443/a/b"
    assert "s3cr3t" not in redact(place_of("http://h/a/password=s3cr3t/b"))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://H/a", "http://h:80"),
        ("https://h/", "https://h:443"),
        ("http://me:pw@h:1/a?b", "http://h:1"),
        ("http://[::1]:8080/a", "http://[::1]:8080"),
        ("https://{application_id}.example.com/", ""),
        ("https://h/{application_id}", "https://h:443"),
        ("ftp://h", ""),
        ("h:8080", ""),
        ("http://h:99999", ""),
        ("", ""),
    ],
)
def test_an_origin(url: str, origin: str) -> None:
    assert origin_of(url) == origin
