"""Reads files of local disks in Python, large plain ones in pieces; the JVM would only hand the bytes through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from spark_lineage.collect.lineage_files import COMPRESSED_SUFFIXES, lines, lines_of
from spark_lineage.launch.line import LineError

SCHEME = "file:"
_CHUNK_BYTES = 1024 * 1024


class Piece(NamedTuple):
    """The lines of a file that begin in a range of its bytes; of a compressed file it is the whole."""

    path: str
    start: int
    end: int

    def lines(self) -> Iterator[bytes | LineError]:
        """Return its lines.

        :raises OSError: when the file cannot be read
        """
        with Path(self.path.removeprefix(SCHEME)).open("rb") as stream:
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
