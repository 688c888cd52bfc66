"""The sender over HTTP against real servers: a yes, every kind of no, and silence."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from spark_lineage.deliver import http_sender
from spark_lineage.deliver.sender import Later, Refused, sender_of
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105


OPEN = []


@pytest.fixture(autouse=True)
def closed():
    """Close each sender of a test."""
    yield
    while OPEN:
        OPEN.pop().close()


def remembered(config):
    OPEN.append(sender_of(config))
    return OPEN[-1]


def opened(backend, **config):
    return remembered({"type": "http", "url": backend.url, "endpoint": "/api/v1/lineage", "timeout": 2.0, **config})


def refused(sender, event) -> Later | Refused:
    with pytest.raises((Later, Refused)) as raised:
        sender.send(event)
    assert raised.value.__context__ is None
    return raised.value


def test_an_event_arrives_as_it_is(backend, event):
    sender = opened(backend, auth={"type": "api_key", "apiKey": SECRET}, custom_headers={"X-Team": "sales"})
    sender.send(event)
    (request,) = backend.requests
    assert (request.path, request.headers["Content-Type"]) == ("/api/v1/lineage", "application/json")
    assert (request.headers["Authorization"], request.headers["X-Team"]) == (f"Bearer {SECRET}", "sales")
    assert json.loads(request.text) == json.loads(event.body)


def test_compressed(backend, event):
    opened(backend, compression="gzip").send(event)
    assert json.loads(backend.requests[0].text) == json.loads(event.body)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_every_2xx_is_a_yes(backend, event, status):
    backend.answers(status, Content_Type="text/html")
    opened(backend).send(event)


def test_a_login_page_is_no_yes(backend, event):
    backend.answers(200, b"\n<!DOCTYPE html><html>Please log in</html>", Content_Type="text/html")
    assert "with an HTML page, as a login in front of the backend" in str(refused(opened(backend), event))


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"\xef\xbb\xbf<html>", ""),
        (b"<?xml version='1.0'?>\n<!-- login -->\n<!DOCTYPE html><html>", ""),
        (gzip.compress(b"<html>log in</html>", mtime=0), "gzip"),
        (b"<html>log in</html>", "gzip"),
    ],
)
def test_send_to_a_login_page_however_it_begins_is_no_yes(backend, event, body, encoding):
    backend.answers(200, body, Content_Type="text/html", **({"Content_Encoding": encoding} if encoding else {}))
    assert "with an HTML page" in str(refused(opened(backend), event))


def test_send_to_a_login_page_that_comes_late_is_no_yes(event):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n"
    with trickling(head, b"<html>", pause_seconds=0.3) as url:
        assert "with an HTML page" in str(refused(remembered({"type": "http", "url": url}), event))


def test_send_with_an_answer_that_unpacks_to_a_gigabyte_keeps_its_start(backend, event):
    backend.answers(422, gzip.compress(b"no " * 10_000_000), Content_Encoding="gzip")
    assert len(str(refused(opened(backend), event))) < 1_200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(backend, backends, event, status):
    other = backends()
    backend.answers(status, Location=f"{other.url}/login?token={SECRET}")
    error = refused(opened(backend, auth={"type": "api_key", "apiKey": SECRET}), event)
    assert not other.requests
    assert f"answered {status}" in str(error)
    assert f"a redirect to {other.url}/login: give the address that takes events" in str(error)
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "(no run)"),
        (401, "the credentials are missing or wrong"),
        (403, "the credentials do not allow this"),
        (404, "check the host and the endpoint"),
        (422, "(no run)"),
        (429, "(no run)"),
        (500, "(no run)"),
        (503, "(no run)"),
    ],
)
def test_a_no_says_what_to_do(backend, event, status, advice):
    backend.answers(status, b"no run", Retry_After="7", Set_Cookie=f"session={SECRET}")
    error = refused(opened(backend), event)
    assert len(backend.requests) == 1, "the outbox makes the other tries"
    assert str(error).startswith(f"{backend.url}/api/v1/lineage answered {status}")
    assert advice in str(error)
    assert isinstance(error, Refused if status in (400, 422) else Later)
    if isinstance(error, Later):
        assert (error.retry_after, error.is_away) == (7, status != 500)
    assert SECRET not in str(error)


def test_the_answer_is_bounded_and_redacted(backend, event):
    backend.answers(400, f"password={SECRET} ".encode() + b"x" * 1_000_000)
    error = refused(opened(backend), event)
    assert SECRET not in str(error)
    assert len(str(error)) < 1_200


def test_secrets_of_the_request_are_nowhere_in_the_error(backend, event):
    backend.answers(500)
    error = refused(opened(backend, auth={"type": "api_key", "apiKey": SECRET}), event)
    assert SECRET not in repr(vars(error)) + str(error)
    assert not hasattr(error, "request")


def test_nobody_there(event):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Later, match=rf"^{url}/api/v1/lineage: no connection: .*Connection refused"):
        remembered({"type": "http", "url": url}).send(event)


def test_an_unknown_host(event):
    with pytest.raises(Later, match="no connection: "):
        remembered({"type": "http", "url": "http://nowhere.invalid"}).send(event)


def test_silence_ends(backend, event, monkeypatch):
    monkeypatch.setattr(http_sender, "_ANSWER_SECONDS", 0.2)
    backend.seconds = 1.5
    started = time.monotonic()
    with pytest.raises(Later, match=r"no answer within 0.2 s"):
        opened(backend, timeout=0.2).send(event)
    assert time.monotonic() - started < 1


@contextlib.contextmanager
def trickling(at_once: bytes, then: bytes = b"", pause_seconds: float = 0.05) -> Iterator[str]:
    """The address of a server that answers a part at once, and the rest byte by byte for five seconds; then it ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as request, contextlib.suppress(OSError):
                head = iter(request.readline, b"\r\n")
                (length,) = [int(line.split()[1]) for line in head if line.startswith(b"Content-Length:")]
                request.read(length)
                connection.sendall(at_once)
                for position in range(100 if then else 0):
                    time.sleep(pause_seconds)
                    connection.sendall(then[position % len(then) :][:1])

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_body_that_never_ends_is_left(event):
    """The status is an answer; the rest is not waited for."""
    started = time.monotonic()
    with trickling(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 9999\r\n\r\n", b"x") as url:
        error = refused(remembered({"type": "http", "url": url, "timeout": 0.3}), event)
    assert "answered 400" in str(error)
    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 9999\r\n\r\n{",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ],
    ids=["cut off", "bad chunk", "bad gzip"],
)
def test_a_yes_with_a_broken_body_is_a_yes(event, answer):
    with trickling(answer) as url:
        remembered({"type": "http", "url": url, "timeout": 5}).send(event)


def test_a_yes_whose_body_trickles_is_a_yes_in_time(event):
    started = time.monotonic()
    with trickling(b"HTTP/1.1 201 Created\r\nContent-Length: 9999\r\n\r\n", b"x") as url:
        remembered({"type": "http", "url": url, "timeout": 0.3}).send(event)
    assert time.monotonic() - started < 1.5


def test_the_login_of_a_netrc_does_not_replace_ours(backend, event, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    opened(backend, auth={"type": "api_key", "apiKey": SECRET}).send(event)
    assert backend.requests[0].headers["Authorization"] == f"Bearer {SECRET}"


def test_an_unknown_authority_is_refused(backends, certificates, event):
    sender = opened(backends(certificates.server_context(wants_client=False)))
    with pytest.raises(Later, match=r"no connection: .*certificate verify failed"):
        sender.send(event)


def test_an_authority_of_the_connection(backends, certificates, event):
    backend = backends(certificates.server_context(wants_client=False))
    opened(backend, sslContext={"caCertPath": str(certificates.authority)}).send(event)
    assert len(backend.requests) == 1


def test_certificates_are_not_checked_where_the_user_says_so(backends, certificates, event):
    backend = backends(certificates.server_context(wants_client=False))
    opened(backend, verify=False).send(event)
    assert len(backend.requests) == 1


@pytest.mark.parametrize("is_one_file", [False, True])
def test_a_client_certificate(backends, certificates, event, tmp_path, is_one_file):
    backend = backends(certificates.server_context(wants_client=True))
    tls = {"caCertPath": str(certificates.authority)}
    with pytest.raises(Later):
        opened(backend, sslContext=tls).send(event)
    if is_one_file:
        both = tmp_path / "both.pem"
        both.write_bytes(certificates.client_key.read_bytes() + certificates.client.read_bytes())
        tls["clientCertPath"] = str(both)
    else:
        tls |= {"clientCertPath": str(certificates.client), "clientKeyPath": str(certificates.client_key)}
    opened(backend, sslContext=tls).send(event)
    assert len(backend.requests) == 1


def test_a_certificate_that_is_not_there(backend):
    with pytest.raises(SettingError, match=r"the certificates in /nowhere\.pem cannot be used: No such file"):
        opened(backend, sslContext={"caCertPath": "/nowhere.pem"})
