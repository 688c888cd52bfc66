"""The receiver over the loopback: what it takes, what it refuses, and for how long it waits."""

from __future__ import annotations

import gzip
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from lineage_backends.certificates import make_certificates
from receiver_service import receiver_service

from spark_lineage.receiver import service as receiver
from spark_lineage.receiver.service import Limits
from spark_lineage.submission.received_events import (
    ENDPOINT,
    REFUSED,
    TOKEN_HEADER,
    ReceivedEvents,
    ReceiverError,
    ReceiverService,
    listener_transport,
    token_of,
)

pytest.importorskip("uvicorn")

from spark_lineage.receiver import server as receiver_server
from spark_lineage.receiver.server import KeptFiles, bound

SECRET = b"planted-secret-of-the-receiver-1"
RUN, OTHER = "0193a4b2-7c1d-7e3f-8a5b-1c2d3e4f5a6b", "0193a4b2-7c1d-7e3f-8a5b-1c2d3e4f5a6c"
EVENTS = (Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson").read_bytes().splitlines(keepends=True)
GZIP = {"Content-Encoding": "gzip"}
NDJSON = {"Content-Type": "application/x-ndjson"}


class Client:
    """Sends to a receiver as the run of a try."""

    def __init__(self, port: int, root: Path, context: ssl.SSLContext | None = None) -> None:
        self.port, self.root = port, root
        self._context = context

    def ask(
        self,
        body: Any = None,
        *,
        run: str = RUN,
        token: str | None = None,
        path: str | None = None,
        method: str = "POST",
        **headers: str,
    ) -> tuple[int, bytes]:
        if self._context is None:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        else:
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=5, context=self._context)
        given = token_of(SECRET, run) if token is None else token
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path or f"{ENDPOINT}{run}", body, {TOKEN_HEADER: given, **headers})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def status(self, body: Any = None, **others: Any) -> int:
        return self.ask(body, **others)[0]

    def kept(self, run: str = RUN) -> bytes:
        file = self.root / f"{run}.ndjson"
        return file.read_bytes() if file.exists() else b""

    @contextmanager
    def raw(self, *, length: int | str = "", rest: str = "\r\n\r\n") -> Iterator[socket.socket]:
        """Begin a request, and leave the rest to the test."""
        head = f"POST {ENDPOINT}{RUN} HTTP/1.1\r\nHost: h\r\n{TOKEN_HEADER}: {token_of(SECRET, RUN)}"
        with socket.create_connection(("127.0.0.1", self.port), timeout=8) as connection:
            connection.sendall(
                f"{head}{f'{chr(13)}{chr(10)}Content-Length: {length}' if length else ''}{rest}".encode()
            )
            yield connection


def is_cut_off(connection: socket.socket) -> bool:
    """Wait for the end of a connection, without an answer; a time-out is an error."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


Serve = Callable[..., Client]


@contextmanager
def serving(root: Path, limits: Limits | None = None, **others: Any) -> Iterator[Client]:
    """Run a receiver."""
    with receiver_service(root, SECRET, limits, **others) as port:
        yield Client(port, root)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start receivers, which end with the test."""
    with ExitStack() as running:
        yield lambda *limits, **others: running.enter_context(serving(tmp_path / "kept", *limits, **others))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One receiver for tests that leave nothing there."""
    with serving(tmp_path_factory.mktemp("kept")) as client:
        yield client
        assert not list(client.root.iterdir())


@pytest.mark.parametrize(
    ("body", "headers", "lines"),
    [
        (EVENTS[0], {}, EVENTS[:1]),
        (gzip.compress(EVENTS[0]), GZIP, EVENTS[:1]),
        (b"".join(EVENTS[:3]), NDJSON, EVENTS[:3]),
        (gzip.compress(b"\n\n".join(EVENTS[:3])), GZIP | NDJSON, EVENTS[:3]),
        (b'{"a":\r\n {"b": "c"}\n}\n', {}, [b'{"a":   {"b": "c"} }\n']),
        ('{"a": "Größe"}'.encode(), {}, ['{"a": "Größe"}\n'.encode()]),
    ],
)
def test_events_are_lines_of_the_file_of_their_run(
    client: Client, body: bytes, headers: dict[str, str], lines: list[bytes]
) -> None:
    assert client.ask(body, **headers) == (201, b"")
    assert client.ask(EVENTS[-1]) == (201, b"")
    assert client.kept() == b"".join([*lines, EVENTS[-1]])
    (file,) = client.root.iterdir()
    assert (file.stat().st_mode & 0o777, client.root.stat().st_mode & 0o777) == (0o600, 0o700)
    file.unlink()


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (401, {"token": ""}),
        (401, {"token": "ä"}),
        (401, {"token": token_of(SECRET, OTHER)}),
        (401, {"token": token_of(b"another secret", RUN)}),
        (401, {"method": "GET", "token": token_of(SECRET, OTHER)}),
        (404, {"path": "/"}),
        (404, {"path": "/api/v1/lineage"}),
        (404, {"path": f"{ENDPOINT}{RUN}/"}),
        (404, {"path": f"{ENDPOINT}../{RUN}"}),
        (404, {"path": f"{ENDPOINT}{RUN.upper()}"}),
        (404, {"path": f"{ENDPOINT}%2e%2e%2f{RUN}"}),
        (405, {"method": "DELETE"}),
        (400, {"body": b""}),
        (400, {"body": b"no JSON"}),
        (400, {"body": b"[1]"}),
        (400, {"body": EVENTS[0][:-9]}),
        (400, {"body": b'{"a": "\xff"}'}),
        (400, {"body": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"}),
        (400, {"body": EVENTS[0] + b'{"torn": \n', **NDJSON}),
        (400, {"body": EVENTS[0], **GZIP}),
        (400, {"body": gzip.compress(EVENTS[0])[:-4], **GZIP}),
        (400, {"body": gzip.compress(EVENTS[0]) + b"more", **GZIP}),
        (400, {"method": "GET", "path": f"{ENDPOINT}{RUN}?offset=-1"}),
        (415, {"body": EVENTS[0], "Content-Encoding": "br"}),
        (413, {"body": gzip.compress(b'{"a": "' + b"0" * 51 * 1024 * 1024 + b'"}'), **GZIP}),
    ],
)
def test_refused_and_nothing_is_written(client: Client, status: int, asked: dict[str, Any]) -> None:
    assert client.status(**{"body": EVENTS[0], **asked}) == status
    assert not list(client.root.iterdir())


def test_a_hundred_megabytes_are_refused_before_they_are_sent(client: Client) -> None:
    with client.raw(length=100 * 1024 * 1024) as connection:
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


def test_a_body_of_unknown_length_is_cut_off(client: Client) -> None:
    sent = 0
    with client.raw(rest="\r\nTransfer-Encoding: chunked\r\n\r\n") as connection, suppress(OSError):
        while sent < 100:
            connection.sendall(b"100000\r\n" + b" " * 1024 * 1024 + b"\r\n")
            sent += 1
    assert 10 <= sent < 30
    assert not client.kept()


@pytest.mark.parametrize(
    ("begun", "rest"),
    [({}, ""), ({}, "\r\nX-"), ({"length": 1000}, "\r\n\r\n{"), ({"length": 1000}, "\r\n\r\n")],
)
def test_who_sends_nothing_is_cut_off_and_others_are_not(serve: Serve, begun: dict[str, int], rest: str) -> None:
    client = serve(silence_seconds=0.5)
    with client.raw(**begun, rest=rest) as connection:
        began = time.monotonic()
        for _ in range(8):
            assert client.status(EVENTS[0]) == 201
        assert is_cut_off(connection)
    assert 0.3 < time.monotonic() - began < 4
    # A connection that says nothing at all, too.
    with socket.create_connection(("127.0.0.1", client.port), timeout=8) as silent:
        assert is_cut_off(silent)


def test_a_byte_now_and_then_does_not_last(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_lineage.receiver.server._REQUEST_SECONDS", 1.0)
    client, sent = serve(silence_seconds=0.6), 0
    with client.raw(length=1000) as connection, suppress(OSError):
        while sent < 40:
            connection.sendall(b" ")
            time.sleep(0.1)
            sent += 1
    assert 8 < sent < 30
    assert not client.kept()


def test_a_head_without_end_is_cut_off(client: Client) -> None:
    with client.raw(rest="\r\n") as connection:
        with suppress(OSError):
            connection.sendall(b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1024) for number in range(100)))
        assert is_cut_off(connection)


def test_several_requests_of_one_connection_at_once(serve: Serve) -> None:
    client = serve()
    head = f"POST {ENDPOINT}{RUN} HTTP/1.1\r\nHost: h\r\n{TOKEN_HEADER}: {token_of(SECRET, RUN)}\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=8) as connection:
        connection.sendall((head + "Content-Length: 2\r\n\r\n{}").encode() * 50)
        answers = b""
        while answers.count(b"HTTP/1.1 201") < 50:
            answers += connection.recv(65536)
    assert client.kept() == b"{}\n" * 50


def test_a_run_has_bounds_of_its_own(serve: Serve) -> None:
    client = serve(Limits(run_bytes=9, requests_a_second=5))
    # A second may end in between.
    asked = [client.status(b"{}") for _ in range(12)]
    assert asked[:3] == [201, 201, 201]
    assert set(asked[3:]) == {507, 429}
    assert client.kept() == b"{}\n" * 3
    assert client.status(b"{}", run=OTHER) == 201


def test_post_a_run_that_takes_all_the_time_is_refused_and_others_are_not(serve: Serve) -> None:
    client = serve(Limits(cpu_share=0.02))
    # Fifty megabytes of spaces are unpacked, and looked through for an event.
    bomb = gzip.compress(b" " * 50_000_000)
    assert [client.status(bomb, **GZIP) for _ in range(8)][-1] == 429
    assert client.status(b"{}", run=OTHER) == 201


def test_post_to_a_root_that_is_a_link_is_taken(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    with serving(tmp_path / "link") as client:
        assert client.status(b"{}") == 201
    assert [path.read_bytes() for path in (tmp_path / "disk").iterdir()] == [b"{}\n"]


def test_what_came_is_given_in_whole_lines(serve: Serve, tmp_path: Path) -> None:
    client = serve(Limits(piece_bytes=100))
    service = ReceiverService(f"http://127.0.0.1:{client.port}", SECRET)
    file = tmp_path / "launch" / "events.ndjson"
    source = ReceivedEvents(service, RUN, file)
    source.pull()
    assert not file.exists()
    for length in (3, 50, 500, 7):
        client.status(json.dumps({"a": "x" * length}).encode())
    client.status(b"no JSON")
    assert client.ask(method="GET", path=f"{ENDPOINT}{RUN}?offset=0")[1].count(b"\n") == 2
    source.pull()
    assert file.read_bytes() == client.kept()
    assert (source.set_aside, file.stat().st_mode & 0o777) == ({REFUSED: 1}, 0o600)
    client.status(b"{}")
    # Another process goes on where this one was lost.
    ReceivedEvents(service, RUN, file).pull()
    assert file.read_bytes() == client.kept()
    with pytest.raises(ReceiverError, match="HTTP 401") as refused:
        ReceivedEvents(ReceiverService(service.url, b"another"), RUN, file).pull()
    assert token_of(b"another", RUN) not in str(refused.value)
    source.close()


def test_a_service_that_is_away_is_an_error_without_secrets(tmp_path: Path) -> None:
    with bound("127.0.0.1", [0]) as free:
        port = free.getsockname()[1]
    with pytest.raises(ReceiverError, match="Connection refused") as away:
        ReceivedEvents(ReceiverService(f"http://127.0.0.1:{port}", SECRET), RUN, tmp_path / "events").pull()
    assert away.value.__cause__ is None


def test_tls(serve: Serve, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    client = serve(certfile=str(certificates.server), keyfile=str(certificates.server_key))
    client = Client(client.port, client.root, ssl.create_default_context(cafile=certificates.authority))
    assert client.status(gzip.compress(EVENTS[0]), **GZIP) == 201
    url = f"https://127.0.0.1:{client.port}"
    file = tmp_path / "events.ndjson"
    ReceivedEvents(ReceiverService(url, SECRET, str(certificates.authority)), RUN, file).pull()
    assert file.read_bytes() == client.kept() != b""
    with pytest.raises(ReceiverError, match=r"TLS failed: .*certificate verify failed"):
        ReceivedEvents(ReceiverService(url, SECRET), RUN, file).pull()
    with socket.create_connection(("127.0.0.1", client.port), timeout=5) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"HTTP" not in plain.recv(100)


def test_old_files_of_a_service_go(tmp_path: Path) -> None:
    old, recent = tmp_path / f"{RUN}.ndjson", tmp_path / f"{OTHER}.ndjson"
    for file, days in ((old, 3), (recent, 1)):
        file.touch()
        os.utime(file, (time.time() - days * 86400,) * 2)
    assert KeptFiles(tmp_path, 2).file_of(OTHER) == recent
    assert list(tmp_path.iterdir()) == [recent]


def test_a_full_disk_tears_no_line(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve()
    assert client.status(b"{}") == 201
    monkeypatch.setattr(receiver, "_FREE_BYTES", 10**18)
    assert client.status(b"{}") == 507
    monkeypatch.undo()
    write = os.write
    monkeypatch.setattr(receiver.os, "write", lambda file, content: write(file, content[: len(content) // 2]))
    assert client.status(b"{}") == 507
    monkeypatch.undo()
    assert client.kept() == b"{}\n"


def test_the_listener_is_told_the_token_in_a_header_that_spark_masks() -> None:
    told = listener_transport("http://h:1", SECRET, RUN)
    assert told["endpoint"] == f"{ENDPOINT}{RUN}"
    (header,) = (key for key, value in told.items() if value == token_of(SECRET, RUN))
    assert "token" in header.lower()


def test_many_that_have_no_token_keep_no_driver_out(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_server, "_MOST_STRANGERS", 5)
    client = serve()
    driver = HTTPConnection("127.0.0.1", client.port, timeout=5)
    with ExitStack() as open_ones:
        driver.request("POST", f"{ENDPOINT}{RUN}", EVENTS[0], {TOKEN_HEADER: token_of(SECRET, RUN)})
        assert driver.getresponse().read() == b""
        strangers = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=8)) for _ in range(20)
        ]
        for one in strangers:
            with suppress(OSError):
                one.sendall(b"POST /api HTTP/1.1\r\n")
        assert is_cut_off(strangers[0])
        driver.request("POST", f"{ENDPOINT}{RUN}", EVENTS[1], {TOKEN_HEADER: token_of(SECRET, RUN)})
        assert driver.getresponse().status == 201, "its connection is kept"
        assert client.ask(EVENTS[2]) == (201, b"")
    driver.close()
    assert client.kept() == b"".join(EVENTS[:3])


def test_a_body_of_too_many_lines(serve: Serve) -> None:
    client = serve(Limits(body_events=3))
    assert client.status(b"{}\n" * 4, **NDJSON) == 413
    assert client.status(b"{}\n" * 3, **NDJSON) == 201
    assert client.kept() == b"{}\n" * 3


def test_what_a_crash_of_the_host_has_cut_is_a_line_of_its_own(serve: Serve) -> None:
    client = serve()
    client.root.mkdir(mode=0o700, exist_ok=True)
    (client.root / f"{RUN}.ndjson").write_bytes(b'{"cut')
    assert client.ask(EVENTS[0]) == (201, b"")
    assert client.kept() == b'{"cut\n' + EVENTS[0]


def test_two_that_copy_one_run_copy_each_event_once(serve: Serve, tmp_path: Path) -> None:
    client = serve(Limits(piece_bytes=1000))
    for event in EVENTS * 5:
        assert client.ask(event) == (201, b"")
    service = ReceiverService(f"http://127.0.0.1:{client.port}", SECRET)
    file = tmp_path / "launch" / "events.ndjson"

    def copy() -> None:
        source = ReceivedEvents(service, RUN, file)
        source.pull()
        source.close()

    threads = [threading.Thread(target=copy) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert file.read_bytes() == client.kept()
