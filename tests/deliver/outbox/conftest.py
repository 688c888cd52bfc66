"""A real HTTP server that records events, and answers as a test tells it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.spool import Spool

RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"
Answer = tuple[int, dict[str, str], str]


def _event(run: int = 0, event_type: str = "START", second: int = 0, **more: Any) -> bytes:
    """One event as it is kept; a later ``second`` makes it another one."""
    return json.dumps(
        {
            "eventTime": f"2024-01-31T12:{second // 60:02}:{second % 60:02}.{second:03}Z",
            "eventType": event_type,
            "job": {"name": "dag.task", "namespace": "airflow"},
            "producer": "https://github.com/spark-lineage",
            "run": {"runId": RUN.format(run)},
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            **more,
        },
        sort_keys=True,
        separators=(",", ":"),
    ).encode()


class Backend:
    """Records what it takes; ``answer`` decides about each event that comes, taken or not."""

    def __init__(self, server: type[HTTPServer] = ThreadingHTTPServer) -> None:
        self.taken: list[bytes] = []
        self.came: list[bytes] = []
        self.answer: Callable[[bytes], Answer] = lambda _: (201, {}, "")
        self.hangs = threading.Event()
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                # openlineage-python writes spaces after colons and commas.
                content = json.dumps(json.loads(content), sort_keys=True, separators=(",", ":")).encode()
                backend.came.append(content)
                if backend.hangs.is_set():
                    time.sleep(3)
                status, headers, text = backend.answer(content)
                if 200 <= status < 300:
                    backend.taken.append(content)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args: Any) -> None:
                pass

        class Server(server):  # type: ignore[misc, valid-type]
            def handle_error(self, *args: Any) -> None:
                """A client that has gone is no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def config(self) -> dict[str, Any]:
        return {"type": "http", "url": self.url, "timeout": 2}


@pytest.fixture
def event() -> Callable[..., bytes]:
    """Makes events: run, type, second, and more keys."""
    return _event


@pytest.fixture
def backend() -> Iterator[Backend]:
    backend = Backend()
    backend.start()
    yield backend
    backend.stop()


@pytest.fixture
def orderly_backend() -> Iterator[Backend]:
    """One that takes requests one after the other, as they came."""
    backend = Backend(HTTPServer)
    backend.start()
    yield backend
    backend.stop()


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "outbox")


@pytest.fixture
def spool(outbox: Outbox) -> Spool:
    return outbox.spool("marquez")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "spark_lineage")
    return caplog


@pytest.fixture(params=[0.5, 60.0])
def trickling(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server that says yes, and then sends a byte of the body each half second, or each minute."""
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(201)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            with suppress(OSError):
                while not is_over.wait(request.param):
                    self.wfile.write(b" ")

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    is_over.set()
    server.shutdown()
    server.server_close()
    thread.join()
