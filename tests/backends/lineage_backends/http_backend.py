"""An OpenLineage backend over HTTP that takes only what OpenLineage's schemas, our own and Marquez take.

It speaks ``POST /api/v1/lineage`` of OpenLineage's ``OpenLineage.yml``: 201 for an event that is right, else a status
and the reason, 422 where a schema is broken. It keeps all that came, with the time and the answer.
"""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lineage_backends.certificates import Certificates
from lineage_backends.http_answers import Answer, Close, Hang, Lose, Refuse
from lineage_backends.marquez import refusal
from lineage_backends.marquez_pages import MarquezPages, pages_after
from lineage_backends.processes import HOST
from lineage_backends.schemas import faults

ENDPOINT = "/api/v1/lineage"


@dataclass(frozen=True)
class Received:
    """One request: when it came (epoch seconds), its event where it could be read, and how it was answered."""

    at: float
    event: Any
    headers: Mapping[str, str]
    status: int | None
    """None: not answered."""
    reason: str = ""
    is_kept: bool = False
    content: bytes = field(default=b"", repr=False)
    """The body, decompressed."""


@dataclass
class OpenLineageBackend:
    """The server, what came to it, and what it is told to answer.

    ``answers`` are used up, one a request; after them every request gets ``always``. ``token`` (bearer) or ``login``
    (basic) are asked for when they are set, ``wants_gzip`` refuses bodies that are not compressed.
    """

    token: str | None = None
    login: tuple[str, str] | None = None
    wants_gzip: bool = False
    certificates: Certificates | None = None
    wants_client_certificate: bool = False
    always: Answer = field(default_factory=Answer)
    answers: deque[Answer] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    port: int = 0
    _server: ThreadingHTTPServer | None = None
    _is_closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its address, without the endpoint."""
        return f"{'https' if self.certificates else 'http'}://{HOST}:{self.port}"

    @property
    def accepted(self) -> list[Received]:
        """The requests whose events it keeps."""
        return [each for each in self.received if each.is_kept]

    @property
    def refused(self) -> list[Received]:
        """The requests whose events it does not keep."""
        return [each for each in self.received if not each.is_kept]

    @property
    def events(self) -> list[Any]:
        """The events that it keeps, as they came."""
        return [each.event for each in self.accepted]

    @property
    def pages(self) -> MarquezPages:
        """What Marquez would show after these events."""
        return pages_after(self.events)

    def start(self) -> None:
        """Listen; on the port of before when it was stopped."""
        backend = self

        class Handler(_Handler):
            to = backend

        self._is_closing.clear()
        server = _Server((HOST, self.port), Handler)
        if self.certificates is not None:
            context = self.certificates.server_context(wants_client=self.wants_client_certificate)
            # The handshake belongs to the thread of the connection: one client cannot hold up the others.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = server.server_port
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.05,), name="openlineage-backend", daemon=True).start()

    def stop(self) -> None:
        """Stop listening: from now on connections are refused, and those that hang are closed."""
        server, self._server = self._server, None
        if server is not None:
            self._is_closing.set()
            server.shutdown()
            server.server_close()

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond ``stop``."""
        self._is_closing.wait(seconds)

    def lets_in(self, header: str | None) -> bool:
        """Whether an ``Authorization`` header is the one that it wants."""
        if self.token is not None:
            return header == f"Bearer {self.token}"
        if self.login is not None:
            return header == f"Basic {base64.b64encode(':'.join(self.login).encode()).decode()}"
        return True


@contextmanager
def openlineage_backend(**options: Any) -> Iterator[OpenLineageBackend]:
    """Run one; ``options`` as the fields of ``OpenLineageBackend``."""
    backend = OpenLineageBackend(**options)
    backend.start()
    try:
        yield backend
    finally:
        backend.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    to: OpenLineageBackend
    protocol_version = "HTTP/1.1"
    timeout = 60  # of a client that says nothing

    def do_GET(self) -> None:
        """As Marquez, for who wants to know whether it is there."""
        if not self.to.lets_in(self.headers.get("Authorization")):
            self._answer(401, "who are you?")
        elif self.path.partition("?")[0] == "/api/v1/namespaces":
            self._answer(200, "", {"namespaces": []})
        elif self.path == ENDPOINT:
            self._answer(405, "POST an event")
        else:
            self._answer(404, "no such path")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        at = time.time()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.to.answers.popleft() if self.to.answers else self.to.always
        if answer.seconds:
            self.to.wait(answer.seconds)
        status, reason, event, content = self._judge(body)
        if isinstance(answer, Refuse):
            status, reason = answer.status, "told to refuse"
        is_kept = status == 201 and not isinstance(answer, Hang | Close)
        told = None if isinstance(answer, Hang | Close | Lose) else status
        # Before the answer goes: who has it, finds the event here.
        self.to.received.append(Received(at, event, dict(self.headers), told, reason, is_kept, content))
        if isinstance(answer, Hang | Close | Lose):
            if isinstance(answer, Hang):
                self._hang()
            self.close_connection = True
        elif isinstance(answer, Refuse):
            after = {} if answer.retry_after is None else {"Retry-After": answer.retry_after}
            self._send(answer.status, answer.body.encode(), after | answer.headers)
        else:
            self._answer(status, reason)

    def _judge(self, body: bytes) -> tuple[int, str, Any, bytes]:
        """Status, reason, the event as far as it can be read, and the body without compression."""
        if refused := self._refusal_of_request():
            return *refused, None, body
        try:
            content = gzip.decompress(body) if self.headers.get("Content-Encoding") else body
            event = json.loads(content)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            return 400, f"no JSON: {error}", None, body
        if isinstance(event, dict) and (refused := refusal(event)):
            return *refused, event, content
        wrong = faults(event)
        return (422, "; ".join(wrong[:20]), event, content) if wrong else (201, "", event, content)

    def _refusal_of_request(self) -> tuple[int, str] | None:
        encoding = self.headers.get("Content-Encoding")
        if not self.to.lets_in(self.headers.get("Authorization")):
            return 401, "who are you?"
        if self.path.partition("?")[0] != ENDPOINT:
            return 404, "no such path"
        if encoding not in {None, "gzip"} or (self.to.wants_gzip and encoding is None):
            return 415, f"the encoding {encoding!r} is not taken"
        if not self.headers.get("Content-Type", "").startswith("application/json"):
            return 415, "the content type is not JSON"
        return None

    def _hang(self) -> None:
        self.connection.settimeout(0.1)
        while not self.to._is_closing.is_set():
            try:
                if not self.connection.recv(1):
                    return  # the client has gone
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError:
                return

    def _answer(self, status: int, reason: str, body: Any = None) -> None:
        if status == 201 and body is None:
            self._send(201, b"", {})
        else:
            self._send(status, json.dumps(body or {"code": status, "message": reason}).encode(), {})

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Tests read ``received``."""
