"""Backends on the loopback that answer what a test wants, and an event for them."""

from __future__ import annotations

import gzip
import ipaddress
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState


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

        do_GET = do_POST  # noqa: N815

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
def event() -> RunEvent:
    return RunEvent(
        eventTime="2026-01-31T12:00:00+00:00",
        eventType=RunState.COMPLETE,
        run=Run("019c13b7-8a00-7000-8000-000000000001"),
        job=Job("default", "dag.täsk"),
        producer="https://example.com/producer",
    )


@dataclass(frozen=True)
class Certificate:
    """A certificate that signs itself, for 127.0.0.1, and its key; ``both`` has the two in one file."""

    certificate: Path
    key: Path
    both: Path

    def server_context(self, *, wants_certificate: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if wants_certificate:
            context.load_verify_locations(self.certificate)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "backend")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    texts = (
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    files = Certificate(folder / "cert.pem", folder / "key.pem", folder / "both.pem")
    files.certificate.write_bytes(texts[0])
    files.key.write_bytes(texts[1])
    files.both.write_bytes(texts[1] + texts[0])
    return files
