"""Receives the events of Spark drivers over HTTP: an ASGI application that appends each one to the file of its run.

``POST /api/v1/lineage/<application_run_id>`` takes an OpenLineage event, or several as NDJSON, gzip or not, and answers
201 when they are in the file. ``GET`` of the same with ``?offset=N`` returns the lines that follow there. Every request
needs the token of that run, in a header.
"""

from __future__ import annotations

import hmac
import os
import re
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec

from spark_lineage.submission.received_events import ENDPOINT, REFUSED_HEADER, TOKEN_HEADER, token_of

SUFFIX = ".ndjson"
_MB = 1024 * 1024
_PATH = re.compile(rf"{ENDPOINT}(?P<run_id>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")
_NDJSON = "application/x-ndjson"
_GZIP = 16 + zlib.MAX_WBITS
_OFFSET_DIGITS = 15
_WINDOW_SECONDS = 5.0
# Events must not fill the disk: it may hold the outbox, too.
_FREE_BYTES = 256 * _MB
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

Headers = list[tuple[bytes, bytes]]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """The largest sizes that are taken, far above a driver's; ``piece_bytes`` is the answer to one ``GET``."""

    body_bytes: int = 10 * _MB
    decompressed_bytes: int = 50 * _MB
    body_events: int = 10_000
    run_bytes: int = 1024 * _MB
    requests_a_second: int = 2000
    """Of a run."""
    cpu_share: float = 0.5
    """What the requests of one run may take of the receiver's CPU time, so that others get theirs."""
    piece_bytes: int = _MB


class Refusal(Exception):  # noqa: N818 - an answer
    """A request that is answered with a status other than 2xx; the text says why, and quotes nothing of it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Receiver:
    """The ASGI application. It is for one event loop, which it holds up no longer than a write takes.

    :param file_of: returns the file of a run
    """

    def __init__(self, secret: bytes, file_of: Callable[[str], Path], limits: Limits | None = None) -> None:
        self.refused: Counter[str] = Counter()
        """How many requests were refused that had the token of their run."""
        self.on_token: Callable[[Any], object] = lambda _: None
        """Called with the address of a client, when the token of a run has come from there."""
        self._secret = secret
        self._file_of = file_of
        self._limits = limits or Limits()
        self._second = 0
        self._asked: Counter[str] = Counter()
        self._window = 0.0
        self._spent: defaultdict[str, float] = defaultdict(float)
        """CPU seconds of each run in the window."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            status, headers, body = await self._answer(scope, receive)
        except Refusal as refusal:
            # The unread rest of the request is not waited for.
            status, headers, body = refusal.status, [(b"connection", b"close")], str(refusal).encode()
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        match = _PATH.fullmatch(scope["path"])
        if match is None:
            raise Refusal(404, "there is nothing here")
        run_id = match["run_id"]
        token = headers.get(TOKEN_HEADER.lower(), "")
        if not hmac.compare_digest(token.encode(), token_of(self._secret, run_id).encode()):
            raise Refusal(401, "the token of this run is missing")
        self.on_token(scope["client"])
        try:
            return await self._answer_run(run_id, scope, headers, receive)
        except Refusal:
            self.refused[run_id] += 1
            raise

    async def _answer_run(
        self, run_id: str, scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> tuple[int, Headers, bytes]:
        file = self._file_of(run_id)
        self._count(run_id)
        if scope["method"] == "GET":
            with self._spending(run_id):
                body = self._read(file, scope)
            return 200, [(REFUSED_HEADER.lower().encode(), b"%d" % self.refused[run_id])], body
        if scope["method"] != "POST":
            raise Refusal(405, "POST events, GET what came")
        is_ndjson = headers.get("content-type", "").startswith(_NDJSON)
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding not in {"identity", "gzip"}:
            raise Refusal(415, "the body is neither plain nor gzip")
        packed = await self._body(headers, receive)
        with self._spending(run_id):
            body = self._decompressed(packed) if encoding == "gzip" else packed
            if is_ndjson and body.count(b"\n") > self._limits.body_events:
                raise Refusal(413, "the body has too many lines")
            self._append(file, b"".join(_lines(body, is_ndjson=is_ndjson)))
        return 201, [], b""

    @contextmanager
    def _spending(self, run_id: str) -> Iterator[None]:
        """Count the CPU time of a block, in which nothing else runs."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._spent[run_id] += time.thread_time() - began

    def _count(self, run_id: str) -> None:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._asked = second, Counter()
        self._asked[run_id] += 1
        if self._asked[run_id] > self._limits.requests_a_second:
            raise Refusal(429, "too many requests of this run")
        if time.monotonic() > self._window + _WINDOW_SECONDS:
            self._window, self._spent = time.monotonic(), defaultdict(float)
        if self._spent[run_id] > self._limits.cpu_share * _WINDOW_SECONDS:
            raise Refusal(429, "the requests of this run take too much time")

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        body, at_most = bytearray(), self._limits.body_bytes
        # The server has looked whether it is a number.
        if int(headers.get("content-length", 0)) > at_most:
            raise Refusal(413, "the body is too large")
        is_more = True
        while is_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the body is cut off")
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
            if len(body) > at_most:
                raise Refusal(413, "the body is too large")
        return bytes(body)

    def _decompressed(self, body: bytes) -> bytes:
        decompressor = zlib.decompressobj(_GZIP)
        try:
            content = decompressor.decompress(body, self._limits.decompressed_bytes)
        except zlib.error:
            raise Refusal(400, "the body is not gzip") from None
        if decompressor.unconsumed_tail:
            raise Refusal(413, "the body is too large when it is decompressed")
        if not decompressor.eof or decompressor.unused_data:
            raise Refusal(400, "the gzip of the body is cut off, or something follows it")
        return content

    def _append(self, file: Path, lines: bytes) -> None:
        try:
            descriptor = os.open(file, _FLAGS, 0o600)
        except FileNotFoundError:
            raise Refusal(404, "no task waits for this run any more") from None
        try:
            size, disk = os.fstat(descriptor).st_size, os.fstatvfs(descriptor)
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                # The host has crashed within a write: what is left of that is a line of its own.
                lines = b"\n" + lines
            if size + len(lines) > self._limits.run_bytes:
                raise Refusal(507, "this run has sent too much")
            if disk.f_bavail * disk.f_frsize < _FREE_BYTES + len(lines):
                raise Refusal(507, "the disk is nearly full")
            if os.write(descriptor, lines) < len(lines):
                # No other process writes there: all of it or nothing.
                os.ftruncate(descriptor, size)
                raise Refusal(507, "the disk is full")
        except OSError as error:
            raise Refusal(507, f"the file of the run cannot be written: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def _read(self, file: Path, scope: Scope) -> bytes:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("offset", ["0"])[0]
        if not (given.isascii() and given.isdigit() and len(given) <= _OFFSET_DIGITS):
            raise Refusal(400, "the offset is not a number")
        try:
            with file.open("rb") as stream:
                stream.seek(int(given))
                piece = stream.read(self._limits.piece_bytes)
                # In whole lines, of which one may be longer than a piece.
                return piece[: piece.rfind(b"\n") + 1] or (piece + stream.readline())
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise Refusal(507, f"the file of the run cannot be read: {error.strerror}") from None


def _lines(body: bytes, *, is_ndjson: bool) -> Iterable[bytes]:
    """Return the events of a body, one a line with its end.

    :raises Refusal: for what is no JSON object
    """
    events = [line for line in body.split(b"\n") if line.strip()] if is_ndjson else [body]
    for event in events:
        try:
            if not event.isascii():
                event.decode()
            _decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Refusal(400, "the body is not a JSON object in UTF-8, or one of its lines is not") from None
    # Within JSON, a line ends only where a space may stand.
    return [event.strip().replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for event in events]


# The values are looked through, and not made.
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
