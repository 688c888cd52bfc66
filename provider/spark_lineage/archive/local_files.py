"""Reads files of local disks in Python, large plain ones in pieces; the JVM would only hand the bytes through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from spark_lineage.collect.compressed import COMPRESSED_SUFFIXES, lines, lines_of

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

    from spark_lineage.archive.sources import SourceFile
    from spark_lineage.collect.line import LineError

SCHEME = "file:"
_PIECE_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
# What a task of Spark is to read; to open a file takes as long as to read some of another.
_TASK_BYTES = 64 * 1024 * 1024
_OPEN_COST_BYTES = 128 * 1024
_TASKS_A_CORE = 3
# How much larger lineage is than its compressed file.
_COMPRESSED = 20


class Piece(NamedTuple):
    """The lines of a file that begin in a range of its bytes; of a compressed file it is the whole."""

    path: str
    start: int
    end: int

    @property
    def cost_bytes(self) -> int:
        """How much work it is, in bytes that are read."""
        size = self.end - self.start
        return _OPEN_COST_BYTES + (size * _COMPRESSED if self.path.endswith(COMPRESSED_SUFFIXES) else size)

    def lines(self) -> Iterator[bytes | LineError]:
        """Give its lines.

        :raises OSError: when the file cannot be read
        """
        with Path(self.path.removeprefix(SCHEME)).open("rb") as stream:
            if self.path.endswith(COMPRESSED_SUFFIXES):
                yield from lines(stream, self.path)
            else:
                yield from lines_of(_chunks(stream, self.start, self.end), is_beginning=not self.start)


def pieces(context: SparkContext, files: Iterable[SourceFile]) -> RDD[Piece]:
    """Give the pieces of files, spread over tasks that have about the same to do."""
    found = sorted(_pieces(files), key=lambda piece: piece.cost_bytes, reverse=True)
    cost = sum(piece.cost_bytes for piece in found)
    tasks = max(context.defaultParallelism * _TASKS_A_CORE, cost // _TASK_BYTES)
    # Each task gets a row of neighbours.
    spread = [piece for number in range(tasks) for piece in found[number::tasks]]
    return context.parallelize(spread, tasks)


def _pieces(files: Iterable[SourceFile]) -> Iterator[Piece]:
    for file in files:
        step = max(file.length, 1) if file.path.endswith(COMPRESSED_SUFFIXES) else _PIECE_BYTES
        for start in range(0, max(file.length, 1), step):
            yield Piece(file.path, start, min(start + step, file.length))


def _chunks(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Give the bytes of the lines that begin in a range."""
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
