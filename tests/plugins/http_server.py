"""HTTP servers on the loopback, for as long as a test needs one, and fixtures of them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answers = Mapping[str, tuple[int, Any]]


class Handler(BaseHTTPRequestHandler):
    """Says nothing of what it is asked."""

    def answer(self, body: bytes = b"", status: int = 200, headers: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests by a handler, each in a thread of its own, and give the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def server() -> Iterator[Callable[[Answers], str]]:
    """Serve answers by path, 404 for others; gives the address."""
    with ExitStack() as servers:

        def serve(answers: Answers) -> str:
            class Served(Handler):
                def do_GET(self) -> None:
                    status, content = answers.get(self.path, answers.get("*", (404, {"message": "not found"})))
                    body = json.dumps(content).encode()
                    self.rfile.read(int(self.headers.get("Content-Length") or 0))
                    self.answer(body, status, {"Content-Type": "application/json"})

                do_POST = do_GET

            return servers.enter_context(serving(Served))

        yield serve


@pytest.fixture
def dead_port() -> Iterator[int]:
    """Return a port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
