"""Folds lines into parts, on executors: what one file says of one application, as state, and never as events."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from spark_lineage.collect.lineage_files import (
    COMPRESSED_SUFFIXES,
    application_of_launch,
    is_status_file,
    lines,
    lines_of,
)
from spark_lineage.launch.line import LineCounts, LineDecoder, LineError, decode_transition
from spark_lineage.merge.state import LineageState, application_run_id, encode_state

LOCAL = "file:"
"""What the URI of a file of a disk begins with: Python reads it; the JVM would only hand the bytes through."""

PART = "file string, application string, parent string, content binary, read bigint, set_aside map<string, bigint>"
"""The schema of ``Part``, in Spark's words."""

_CHUNK_BYTES = 1024 * 1024
# Java writes no authority as three slashes in one place, and as one in another.
_NO_AUTHORITY = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*:)///")


class Piece(NamedTuple):
    """The lines of a file of a disk that begin in a range of its bytes; of a compressed file it is the whole."""

    path: str
    start: int
    end: int

    def lines(self) -> Iterator[bytes | LineError]:
        """Return its lines.

        :raises OSError: when the file cannot be read
        """
        with Path(self.path.removeprefix(LOCAL)).open("rb") as stream:
            if self.path.endswith(COMPRESSED_SUFFIXES):
                yield from lines(stream, self.path)
            else:
                yield from lines_of(_chunks(stream, self.start, self.end), is_beginning=not self.start)


def _chunks(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Return the bytes of the lines that begin in a range."""
    if start:
        # The line before may end with the very byte before.
        stream.seek(start - 1)
        for _ in _rest_of_line(stream):
            pass
    last = b"\n"
    while (left := end - stream.tell()) > 0 and (chunk := stream.read(min(left, _CHUNK_BYTES))):
        yield chunk
        last = chunk
    if not last.endswith(b"\n"):
        yield from _rest_of_line(stream)


def _rest_of_line(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.readline(_CHUNK_BYTES):
        yield chunk
        if chunk.endswith(b"\n"):
            return


class Part(NamedTuple):
    """What one file, or a split of one, says of one application: its state, and the run that it names as its parent.

    A part without ``application`` has the counts of the lines of its file, by reason where they were set aside.
    """

    file: str
    application: str | None
    parent: str | None
    content: bytes | None
    read: int | None
    set_aside: Mapping[str, int] | None


def fold_pieces(pieces: Iterable[Piece]) -> Iterator[Part]:
    """Fold pieces of files of disks."""
    decoder = LineDecoder()
    for piece in pieces:
        # Of a file that is gone by now there is no part, which the driver sees.
        with suppress(FileNotFoundError):
            yield from _parts(piece.path, piece.lines(), decoder)


def fold_located(located: Iterable[bytes]) -> Iterator[Part]:
    """Fold what Spark has read: lines, or whole compressed files, each behind the URI of its file and a tab."""
    decoder = LineDecoder()
    for uri, group in groupby(located, key=lambda one: one[: one.index(b"\t")]):
        path = _NO_AUTHORITY.sub(r"\1/", unquote(uri.decode()))
        contents = (one[len(uri) + 1 :] for one in group)
        if path.endswith(COMPRESSED_SUFFIXES):
            # They are decompressed in Python, where a torn one fails no job.
            yield from _parts(path, (line for each in contents for line in lines(io.BytesIO(each), path)), decoder)
        else:
            yield from _parts(path, contents, decoder)


def _parts(path: str, its_lines: Iterable[bytes | LineError], decoder: LineDecoder) -> Iterator[Part]:
    counts = LineCounts()
    states: dict[str, LineageState] = {}
    is_status, launch = is_status_file(path), application_of_launch(path)

    def add(line: bytes | LineError) -> None:
        if isinstance(line, LineError):
            raise line
        if is_status:
            if launch is None:
                raise LineError("of no launch")
            states.setdefault(launch, LineageState()).transitions.add(decode_transition(line))
            return
        event, inputs, outputs = decoder.decode(line)
        application = application_run_id(event)
        if (state := states.get(application)) is None:
            state = states[application] = LineageState()
        state.add(event, inputs, outputs)

    for line in its_lines:
        try:
            add(line)
        except LineError as error:
            counts.add(error.reason)
        else:
            counts.read += 1
    for application, state in states.items():
        parent = state.parents.get(application)
        yield Part(path, application, None if parent is None else parent.run_id, encode_state(state), None, None)
    yield Part(path, None, None, None, counts.read, counts.set_aside)
