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
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct
from requests.auth import HTTPBasicAuth

from spark_lineage.settings import SettingError
from spark_lineage.watch import async_rest, rest
from spark_lineage.watch.async_rest import AsyncRest
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import Access, NoAnswerError, RestClient, origin_of, place_of

SECRET = "s3cr3t"  # noqa: S105 - planted


class Pair(Struct):
    name: str
    number: int = 0


def client_of(url: str, **extra: str) -> RestClient:
    return Endpoints("local", "client", {"history_server_url": url, **extra}).client()


def no_answer(client: RestClient, url: str, shape: Any = Any) -> NoAnswerError:
    with pytest.raises(NoAnswerError) as caught:
        client.get_json(url, shape)
    # Airflow logs tracebacks: the chain must hold no secret either.
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))
    return caught.value


def test_json_is_decoded_as_its_shape(loopback: Any) -> None:
    url = loopback.reply("/a", json={"name": "x", "number": "7", "more": [1]})
    client = RestClient()
    assert client.get_json(url) == {"name": "x", "number": "7", "more": [1]}
    assert client.get_json(url, Pair) == Pair("x", 7)
    assert loopback.asked[0][1]["Accept"] == "application/json, text/json"


def test_compressed_json_is_read(loopback: Any) -> None:
    url = loopback.reply("/a", body=gzip.compress(b'{"name": "x"}'), headers={"Content-Encoding": "gzip"})
    assert RestClient().get_json(url, Pair) == Pair("x")


def test_a_connection_is_kept(loopback: Any) -> None:
    url = loopback.reply("/a", json=[])
    client = RestClient()
    for _ in range(5):
        client.get_json(url)
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
    error = no_answer(RestClient(), loopback.reply("/a", **answer), Pair)
    assert text in str(error)
    assert f"{loopback.url}/a" in str(error)
    assert error.http_status == status


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = no_answer(RestClient(), f"{url}/a?token=s3cr3t")
    assert str(error) == f"{url}/a: Connection refused"
    assert error.http_status is None


def test_an_answer_that_does_not_come(loopback: Any) -> None:
    url = loopback.reply("/a", json={}, seconds=2)
    began = time.monotonic()
    assert "no answer in time" in str(no_answer(RestClient(timeout_seconds=0.2), url))
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
    error = no_answer(RestClient(timeout_seconds=0.2), dripping)
    assert "took too long" in str(error) or "no answer in time" in str(error)


def test_an_answer_that_drips_to_a_trigger(dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_rest, "READ_TIMEOUT_SECONDS", 0.2)
    asked = AsyncRest(Endpoints("yarn", "cluster", {"history_server_url": dripping}))
    with pytest.raises(NoAnswerError, match="TimeoutError"):
        asyncio.run(asked._ask("GET", dripping))


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_that_is_too_large(loopback: Any, monkeypatch: pytest.MonkeyPatch, compressed: bool) -> None:
    monkeypatch.setattr(rest, "MAX_BYTES", 1024 * 1024)
    body = b" " * 3_000_000
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    url = loopback.reply("/a", body=gzip.compress(body) if compressed else body, headers=headers)
    assert "more than 1 MB" in str(no_answer(RestClient(), url))


@pytest.mark.parametrize(
    "url", ["", "localhost", "ftp://h/a", "http://", "http://[::1/a", "http://h:port/a", "file:///a"]
)
def test_what_is_no_url(url: str) -> None:
    no_answer(RestClient(), url)


def test_a_redirect_is_not_followed_wherever_it_leads(loopback: Any) -> None:
    for headers in ({}, {"Location": ""}, {"Location": "/a"}, {"Location": "ftp://h"}, {"Location": "http://[::1"}):
        url = loopback.reply("/a", status=307, headers=headers)
        assert str(no_answer(RestClient(), url)) == f"{url} answered HTTP 307"
    assert len(loopback.asked) == 5


def test_the_body_of_a_redirect_is_not_read(loopback: Any) -> None:
    headers = {"Location": "http://h/"}
    url = loopback.reply("/a", status=302, headers=headers, body=b" ", missing_bytes=10**9)
    assert "HTTP 302, a redirect to http://h:80" in str(no_answer(RestClient(), url))


def test_no_redirect_to_another_host_is_followed(loopbacks: Callable[[], Any]) -> None:
    ours, others = loopbacks(), loopbacks()
    target = others.reply("/login", json={})
    url = ours.reply("/a", status=302, headers={"Location": f"{target}?token=s3cr3t"})
    client = RestClient({origin_of(ours.url): Access(HTTPBasicAuth("me", SECRET))})
    error = no_answer(client, url)
    assert f"a redirect to {others.url}" in str(error)
    assert not others.asked


def test_credentials_go_to_named_hosts_only(loopbacks: Callable[[], Any]) -> None:
    named, driver = loopbacks(), loopbacks()
    client = RestClient({origin_of(named.url): Access(HTTPBasicAuth("me", SECRET))})
    for server in (named, driver):
        client.get_json(server.reply("/a", json={}))
    assert named.asked[0][1]["Authorization"] == "Basic bWU6czNjcjN0"
    assert driver.asked[0][1]["Authorization"] is None


def test_cookies_do_not_go_to_another_port(loopbacks: Callable[[], Any]) -> None:
    manager, driver = loopbacks(), loopbacks()
    client = RestClient()
    url = manager.reply("/a", json={}, headers={"Set-Cookie": "hadoop.auth=s3cr3t; Path=/"})
    client.get_json(url)
    client.get_json(url)
    client.get_json(driver.reply("/a", json={}))
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
    assert RestClient().get_json(loopback.reply("/a", json=[1])) == [1]
    assert loopback.asked[0][1]["Authorization"] is None


def test_other_hosts_are_asked_through_the_proxy(loopback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", loopback.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    loopback.reply("http://spark.invalid/a", json=[1])
    assert RestClient().get_json("http://spark.invalid/a") == [1]


def test_a_token_file_is_read_again(loopback: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    url = loopback.reply("/a", json={})
    file.touch()
    client = client_of(loopback.url, status_token_file=str(file))
    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        client.get_json(url)
    assert [headers["Authorization"] for _, headers in loopback.asked] == ["Bearer first", "Bearer second"]
    file.unlink()
    assert f"the token file {file} cannot be read: No such file" in str(no_answer(client, url))
    file.write_bytes(b"\xff")
    assert "UnicodeDecodeError" in str(no_answer(client, url))


def test_kerberos(loopback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Negotiate:
        def __init__(self, mutual_authentication: int) -> None:
            self.mutual_authentication = mutual_authentication

        def __call__(self, request: Any) -> Any:
            request.headers["Authorization"] = f"Negotiate {self.mutual_authentication}"
            return request

    monkeypatch.setitem(sys.modules, "requests_kerberos", SimpleNamespace(HTTPKerberosAuth=Negotiate, OPTIONAL=3))
    url = loopback.reply("/a", json={})
    client_of(loopback.url, status_auth="kerberos").get_json(url)
    assert loopback.asked[0][1]["Authorization"] == "Negotiate 3"


def test_kerberos_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)
    with pytest.raises(SettingError, match="needs the package requests-kerberos"):
        client_of("http://h", status_auth="kerberos")


def test_no_secret_is_shown() -> None:
    assert "s3cr3t" not in repr(Access(HTTPBasicAuth("me", SECRET)))
    assert place_of("https://me:s3cr3t@Host/a/b?token=s3cr3t#s3cr3t") == "https://host:443/a/b"
    assert "s3cr3t" not in place_of("http://h/a/password=s3cr3t/b")


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
