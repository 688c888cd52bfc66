"""Lineage files as they are kept: plain, or compressed with gzip or Zstandard, which their names tell."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import zstandard

from spark_lineage.launch.line import LineError, LineSplitter

GZIP_SUFFIXES = (".gz",)
ZSTANDARD_SUFFIXES = (".zst", ".zstd")
COMPRESSED_SUFFIXES = GZIP_SUFFIXES + ZSTANDARD_SUFFIXES
_CHUNK_BYTES = 1024 * 1024


def plain_name(name: str) -> str:
    """Return the name without what says how the file is compressed."""
    for suffix in COMPRESSED_SUFFIXES:
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name


def lines(stream: BinaryIO, name: str) -> Iterator[bytes | LineError]:
    """Return the lines of a whole file; of a torn one those that could be read, and a ``LineError`` after them.

    :raises OSError: when the file cannot be read
    """
    return lines_of(chunks(stream, name), is_beginning=True)


def lines_of(chunks: Iterable[bytes], *, is_beginning: bool) -> Iterator[bytes | LineError]:
    """Return the lines of what a file holds; a ``LineError`` that is raised on the way comes after them.

    :param is_beginning: whether a byte order mark may come first, which is left out, as Hadoop does
    """
    splitter = LineSplitter()
    mark = codecs.BOM_UTF8 if is_beginning else b""
    torn: list[LineError] = []
    try:
        for chunk in chunks:
            yield from splitter.feed(chunk.removeprefix(mark))
            mark = b""
    except LineError as error:
        torn.append(error)
    yield from splitter.finish()
    yield from torn


def chunks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Return what a file holds, in chunks, decompressed as its name tells.

    :raises LineError: ``torn file``, after all that could be read
    :raises OSError: when the file cannot be read
    """
    if name.endswith(GZIP_SUFFIXES):
        yield from _unzipped(stream)
    elif name.endswith(ZSTANDARD_SUFFIXES):
        yield from _unzstd(stream)
    else:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def _unzipped(stream: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=stream) as file:
            # Not read, which keeps what it has when it finds the end missing.
            while chunk := file.read1(_CHUNK_BYTES):
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LineError("torn file", f"its gzip is cut off or damaged: {error}") from None


def _unzstd(stream: BinaryIO) -> Iterator[bytes]:
    try:
        with zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True, closefd=False) as reader:
            while chunk := reader.read(_CHUNK_BYTES):
                yield chunk
    except zstandard.ZstdError as error:
        raise LineError("torn file", f"its Zstandard is damaged: {error}") from None
