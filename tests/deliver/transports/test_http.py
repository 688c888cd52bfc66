"""The HTTP transport against real servers: a yes, every kind of no, and silence."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from openlineage.client.serde import Serde

from spark_lineage.deliver.transports.errors import NotTakenError, UnreachableError
from spark_lineage.deliver.transports.opening import make_transport

SECRET = "hunter2hunter2"  # noqa: S105


def opened(backend, **config):
    return make_transport({"type": "http", "url": backend.url, "endpoint": "/api/v1/lineage", "timeout": 2.0, **config})


def refused(transport, event) -> NotTakenError:
    with pytest.raises(NotTakenError) as raised:
        transport.emit(event)
    assert raised.value.__context__ is None
    return raised.value


def test_an_event_arrives_as_it_is(backend, event):
    transport = opened(backend, auth={"type": "api_key", "apiKey": SECRET}, custom_headers={"X-Team": "sales"})
    assert transport.emit(event).status_code == 201
    (request,) = backend.requests
    assert (request.path, request.headers["Content-Type"]) == ("/api/v1/lineage", "application/json")
    assert (request.headers["Authorization"], request.headers["X-Team"]) == (f"Bearer {SECRET}", "sales")
    assert json.loads(request.text) == Serde.to_dict(event)


def test_compressed(backend, event):
    opened(backend, compression="gzip").emit(event)
    assert json.loads(backend.requests[0].text) == Serde.to_dict(event)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_every_2xx_is_a_yes(backend, event, status):
    backend.answers(status, Content_Type="text/html")
    opened(backend).emit(event)


def test_a_login_page_is_no_yes(backend, event):
    backend.answers(200, b"\n<!DOCTYPE html><html>Please log in</html>", Content_Type="text/html")
    assert "with an HTML page, as a login in front of the backend" in str(refused(opened(backend), event))


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
    assert (error.response.status_code, error.response.headers["Retry-After"]) == (status, "7")
    assert "Set-Cookie" not in error.response.headers


def test_the_answer_is_bounded_and_redacted(backend, event):
    backend.answers(400, f"password={SECRET} ".encode() + b"x" * 1_000_000)
    error = refused(opened(backend), event)
    assert SECRET not in error.response.text
    assert SECRET not in str(error)
    assert len(error.response.content) < 20_000
    assert len(str(error)) < 1_200


def test_secrets_of_the_request_are_nowhere_in_the_error(backend, event):
    backend.answers(500)
    error = refused(opened(backend, auth={"type": "api_key", "apiKey": SECRET}), event)
    assert SECRET not in repr(vars(error)) + repr(vars(error.response))
    assert not hasattr(error, "request")


def test_nobody_there(event):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UnreachableError, match=rf"^{url}/api/v1/lineage: no answer: Connection refused"):
        make_transport({"type": "http", "url": url}).emit(event)


def test_an_unknown_host(event):
    with pytest.raises(UnreachableError, match="no answer: "):
        make_transport({"type": "http", "url": "http://nowhere.invalid"}).emit(event)


def test_silence_ends(backend, event):
    backend.seconds = 1.5
    started = time.monotonic()
    with pytest.raises(NotTakenError, match=r"no answer within 0.2 s"):
        opened(backend, timeout=0.2).emit(event)
    assert time.monotonic() - started < 1


@contextlib.contextmanager
def trickling(at_once: bytes, then: bytes = b"") -> Iterator[str]:
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
                    time.sleep(0.05)
                    connection.sendall(then[position % len(then) :][:1])

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_body_that_never_ends_is_left(event):
    """The status is an answer; the rest is not waited for."""
    started = time.monotonic()
    with trickling(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 9999\r\n\r\n", b"x") as url:
        error = refused(make_transport({"type": "http", "url": url, "timeout": 0.3}), event)
    assert error.response.status_code == 400
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
        assert make_transport({"type": "http", "url": url, "timeout": 5}).emit(event).status_code == 201


def test_a_yes_whose_body_trickles_is_a_yes_in_time(event):
    started = time.monotonic()
    with trickling(b"HTTP/1.1 201 Created\r\nContent-Length: 9999\r\n\r\n", b"x") as url:
        assert make_transport({"type": "http", "url": url, "timeout": 0.3}).emit(event).status_code == 201
    assert time.monotonic() - started < 1.5


def test_headers_that_trickle_do_not_outlive_the_time_out(event):
    started = time.monotonic()
    with (
        trickling(b"HTTP/1.1 201 Created\r\nX-Long: ", b"x") as url,
        pytest.raises(NotTakenError, match=r"no answer within 0.3 s"),
    ):
        make_transport({"type": "http", "url": url, "timeout": 0.3}).emit(event)
    assert time.monotonic() - started < 1.5


def test_the_login_of_a_netrc_does_not_replace_ours(backend, event, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    opened(backend, auth={"type": "api_key", "apiKey": SECRET}).emit(event)
    assert backend.requests[0].headers["Authorization"] == f"Bearer {SECRET}"


def test_an_unknown_authority_is_refused(backends, certificates, event):
    transport = opened(backends(certificates.server_context(wants_client=False)))
    with pytest.raises(UnreachableError, match=r"TLS failed: .*certificate verify failed.*; look at 'verify'"):
        transport.emit(event)


def test_an_authority_of_the_connection(backends, certificates, event):
    backend = backends(certificates.server_context(wants_client=False))
    opened(backend, sslContext={"caCertPath": str(certificates.authority)}).emit(event)
    assert len(backend.requests) == 1


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_certificates_are_not_checked_where_the_user_says_so(backends, certificates, event):
    backend = backends(certificates.server_context(wants_client=False))
    opened(backend, verify=False).emit(event)
    assert len(backend.requests) == 1


@pytest.mark.parametrize("is_one_file", [False, True])
def test_a_client_certificate(backends, certificates, event, tmp_path, is_one_file):
    backend = backends(certificates.server_context(wants_client=True))
    tls = {"caCertPath": str(certificates.authority)}
    with pytest.raises(UnreachableError):
        opened(backend, sslContext=tls).emit(event)
    if is_one_file:
        both = tmp_path / "both.pem"
        both.write_bytes(certificates.client_key.read_bytes() + certificates.client.read_bytes())
        tls["clientCertPath"] = str(both)
    else:
        tls |= {"clientCertPath": str(certificates.client), "clientKeyPath": str(certificates.client_key)}
    opened(backend, sslContext=tls).emit(event)
    assert len(backend.requests) == 1


def test_a_certificate_that_is_not_there(backends, certificates, event):
    backend = backends(certificates.server_context(wants_client=False))
    with pytest.raises(UnreachableError, match=r"/nowhere\.pem"):
        opened(backend, sslContext={"caCertPath": "/nowhere.pem"}).emit(event)
