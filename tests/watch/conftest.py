"""Loopback servers that answer what a test wants, and real ones of Spark and YARN."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fast_spark import JAVA_ENV
from lineage_backends.history_server import history_server as run_history_server
from standalone_cluster import SMALL

PROGRAMS = Path(__file__).parent / "programs"
Found = TypeVar("Found")


@dataclass
class Reply:
    """What a server answers: JSON of ``json``, or ``body`` as it is; ``seconds`` before it does."""

    json: Any = None
    body: bytes | None = None
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    missing_bytes: int = 0

    @property
    def content(self) -> bytes:
        return json.dumps(self.json).encode() if self.body is None else self.body


@dataclass
class Loopback:
    """A server on the loopback; ``replies`` by path without parameters, ``asked`` are the requests, with headers."""

    server: ThreadingHTTPServer
    replies: dict[str, Reply | Callable[[str], Reply]] = field(default_factory=dict)
    asked: list[tuple[str, Message]] = field(default_factory=list)
    connections: set[tuple[str, int]] = field(default_factory=set)
    sockets: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def reply(self, path: str, **values: Any) -> str:
        """Answer a path, and give its URL."""
        self.replies[path] = Reply(**values)
        return f"{self.url}{path}"

    def stop(self) -> None:
        """Listen no more, and answer no more on what is connected."""
        self.server.shutdown()
        self.server.server_close()
        for one in self.sockets:
            with contextlib.suppress(OSError):  # closed already
                one.shutdown(socket.SHUT_RDWR)


def _start(tls: ssl.SSLContext | None) -> Loopback:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            loopback.sockets.append(self.request)
            super().setup()

        def do_GET(self) -> None:
            loopback.asked.append((self.path, self.headers))
            loopback.connections.add(self.client_address)
            reply = loopback.replies.get(self.path.partition("?")[0], Reply(status=404, body=b"nothing here"))
            reply = reply if isinstance(reply, Reply) else reply(self.path)
            time.sleep(reply.seconds)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.content) + reply.missing_bytes))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # one that had enough
                self.wfile.write(reply.content)
            self.close_connection = self.close_connection or bool(reply.missing_bytes)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            pass  # a client that refuses our certificate

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    loopback = Loopback(server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return loopback


@pytest.fixture
def loopbacks() -> Iterator[Callable[..., Loopback]]:
    """Starts servers, with TLS where a context is given."""
    started: list[Loopback] = []

    def start(tls: ssl.SSLContext | None = None) -> Loopback:
        started.append(_start(tls))
        return started[-1]

    yield start
    for loopback in started:
        loopback.stop()


@pytest.fixture
def loopback(loopbacks: Callable[[], Loopback]) -> Loopback:
    """One server."""
    return loopbacks()


@dataclass
class Processes:
    """Java processes that run beside the tests; each is stopped by its own id."""

    folder: Path
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as stream:
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
            )
        self.started[name] = process
        return process

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def logged(self, name: str, pattern: str, seconds: float = 120) -> str:
        """Wait for a line, and give its first group."""
        found = self.wait_for(f"{pattern} in the log of {name}", lambda: re.search(pattern, self.log(name)), seconds)
        return str(found[1])

    def wait_for(self, what: str, found: Callable[[], Found], seconds: float = 120) -> Found:
        deadline = time.monotonic() + seconds
        while not (result := found()):
            logs = "\n".join(f"==> {one.name} <==\n{self.log(one.stem)[-3000:]}" for one in self.folder.glob("*.log"))
            assert time.monotonic() < deadline, f"Waited {seconds} s for {what}.\n{logs}"
            time.sleep(0.1)
        return result

    def stop(self, name: str) -> None:
        process = self.started.pop(name)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A place for processes that end with the module."""
    processes = Processes(tmp_path_factory.mktemp("processes"))
    yield processes
    for name in list(reversed(processes.started)):
        processes.stop(name)


@pytest.fixture(scope="session")
def spark_env() -> dict[str, str]:
    """The environment of Spark's own commands, without anything of the user's."""
    if shutil.which("java") is None:
        pytest.skip("Java 17 is not installed (java is not on the PATH)")
    binaries = str(Path(sys.executable).parent)
    if shutil.which("spark-class", path=binaries) is None:
        pytest.skip(f"PySpark is not installed (no spark-class in {binaries})")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SPARK")}
    path = os.pathsep.join([binaries, os.environ["PATH"]])
    return kept | JAVA_ENV | {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}


@pytest.fixture(scope="module")
def history_server(processes: Processes, spark_env: dict[str, str]) -> Iterator[str]:
    """The address of a History Server, which reads ``events`` in the folder of the processes."""
    events = processes.folder / "events"
    events.mkdir()
    with run_history_server(events, spark_env, processes.folder) as url:
        yield url


@pytest.fixture(scope="module")
def submit_python(processes: Processes, spark_env: dict[str, str]) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a program of ``programs`` in client mode, with one executor, as the process ``driver``."""

    def submit(master: str, program: str, *arguments: Path) -> subprocess.Popen[bytes]:
        conf = {
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(processes.folder / "events"),
            **SMALL,
        }
        options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
        command = [str(shutil.which("spark-submit", path=spark_env["PATH"])), "--master", master, *options]
        return processes.start("driver", [*command, str(PROGRAMS / program), *map(str, arguments)], spark_env)

    return submit
