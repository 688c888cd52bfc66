"""An Atlas in memory that answers as the real one, version 2.1.0, is recorded to: REST v2, hooks over Kafka, a page.

It knows neither classifications, glossary, audits nor roles; a search is a look at every entity.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from lineage_backends.atlas import HOOK_TOPIC, PASSWORD, USER, models
from lineage_backends.atlas_graph import Graph
from lineage_backends.atlas_hooks import Hooks
from lineage_backends.atlas_page import page
from lineage_backends.atlas_requests import answer
from lineage_backends.atlas_types import AtlasError, Types
from lineage_backends.kafka import Kafka
from lineage_backends.processes import HOST


@dataclass
class AtlasEmulator:
    """The server, what it knows, and what came of the messages of hooks."""

    graph: Graph
    hooks: Hooks
    user: str = USER
    password: str = PASSWORD
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever reads or changes the graph."""

    @property
    def url(self) -> str:
        """Its address; ``/api/atlas`` follows, or nothing for the page."""
        return f"http://{HOST}:{self.port}"


@contextmanager
def atlas_emulator(broker: Kafka | None = None, topic: str = HOOK_TOPIC) -> Iterator[AtlasEmulator]:
    """Run one, which reads a topic of ``broker`` when there is one."""
    at = int(time.time() * 1000)
    stamp = {"createdBy": USER, "updatedBy": USER, "createTime": at, "updateTime": at, "version": 1}
    known = [each for definitions in models().values() for each in definitions]
    graph = Graph(Types({each["name"]: {"guid": str(uuid.uuid4())} | stamp | each for each in known}))
    emulator = AtlasEmulator(graph, Hooks(graph))

    class Handler(_Handler):
        to = emulator

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    emulator.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.05,), name="atlas-emulator", daemon=True).start()
    is_over = threading.Event()
    reader = threading.Thread(target=_read, args=(emulator, broker, topic, is_over), name="atlas-hooks", daemon=True)
    if broker is not None:
        reader.start()
    try:
        yield emulator
    finally:
        is_over.set()
        if broker is not None:
            reader.join(10)
        server.shutdown()
        server.server_close()


def _read(emulator: AtlasEmulator, broker: Kafka, topic: str, is_over: threading.Event) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    with contextlib.suppress(KafkaException):  # it is there already
        broker.create_topic(topic)
    settings = {"bootstrap.servers": broker.open_bootstrap, "group.id": "atlas-emulator", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while not is_over.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            with emulator.lock:
                emulator.hooks.take((message.value() or b"").decode(errors="replace"))
    consumer.close()


class _Handler(BaseHTTPRequestHandler):
    to: AtlasEmulator
    protocol_version = "HTTP/1.1"
    timeout = 60  # of a client that says nothing
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        login = f"Basic {base64.b64encode(f'{self.to.user}:{self.to.password}'.encode()).decode()}"
        query = parse_qs(url.query, keep_blank_values=True)
        if url.path != "/api/atlas/admin/status" and self.headers.get("Authorization") != login:
            self._send(401, b"", "text/plain")
        elif url.path == "/":
            with self.to.lock:
                self._send(200, page(self.to.graph, query.get("guid", [""])[0]).encode(), "text/html; charset=utf-8")
        else:
            self._answer(unquote(url.path).removeprefix("/api/atlas"), query, body)

    do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        try:
            with self.to.lock:
                came = answer(self.command, path, self.to.graph, query, body, self.to.user)
        except AtlasError as error:
            if not error.code:
                self._send(error.status, b"<html><body>There was an error</body></html>", "text/html")
                return
            told = {"errorCode": error.code, "errorMessage": error.message}
            self._send(error.status, json.dumps(told).encode(), "application/json")
        else:
            content = b"" if came is None else json.dumps(came).encode()
            self._send(200 if content else 204, content, "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="atlas.com"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""
