"""Backends on the loopback that answer what a test wants, and an event for them."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from spark_lineage.deliver.outgoing import Outgoing


@dataclass
class Request:
    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return (gzip.decompress(self.body) if self.headers["Content-Encoding"] == "gzip" else self.body).decode()


@dataclass
class Backend:
    """A server on the loopback: ``answer`` gives status, headers and body; ``requests`` are those that it got."""

    server: ThreadingHTTPServer
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)
    answer: Callable[[Request], tuple[int, dict[str, str], bytes]] = lambda _: (201, {}, b"")
    seconds: float = 0.0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"

    def answers(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.answer = lambda _: (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def _start(tls: ssl.SSLContext | None) -> Backend:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            request = Request(self.command, self.path, self.headers, body)
            backend.requests.append(request)
            time.sleep(backend.seconds)
            status, headers, content = backend.answer(request)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that leaves before the answer, or in the TLS handshake, is what a test wanted."""

    backend = Backend(Server(("127.0.0.1", 0), Handler), scheme="https" if tls else "http")
    if tls is not None:
        backend.server.socket = tls.wrap_socket(backend.server.socket, server_side=True)
    threading.Thread(target=backend.server.serve_forever, args=(0.05,), daemon=True).start()
    return backend


@pytest.fixture
def backends() -> Iterator[Callable[..., Backend]]:
    """Starts a backend, with TLS where a context is given; all stop with the test."""
    started: list[Backend] = []

    def start(tls: ssl.SSLContext | None = None) -> Backend:
        started.append(_start(tls))
        return started[-1]

    yield start
    for backend in started:
        backend.server.shutdown()
        backend.server.server_close()


@pytest.fixture
def backend(backends: Callable[..., Backend]) -> Backend:
    return backends()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's own proxy and trust store are."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def event() -> Outgoing:
    return made("dag.täsk")


def made(job: str) -> Outgoing:
    """Return the end of a run of a job, as openlineage-python writes it."""
    event = RunEvent(
        eventTime="2026-01-31T12:00:00+00:00",
        eventType=RunState.COMPLETE,
        run=Run("019c13b7-8a00-7000-8000-000000000001"),
        job=Job("default", job),
        producer="https://example.com/producer",
    )
    return Outgoing.of(Serde.to_json(event).encode())
