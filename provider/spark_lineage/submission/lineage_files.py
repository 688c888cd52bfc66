"""Lineage files on disk: which files they are by their names, and their lines, decompressed.

What reads a file raises ``OSError`` when it cannot be read.
"""

from __future__ import annotations

import codecs
import gzip
import posixpath
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import zstandard

from spark_lineage.launch.directory import TRANSITIONS_FILE
from spark_lineage.launch.line import LineError, LineSplitter

HIDDEN = (".", "_")
GZIP_SUFFIXES = (".gz",)
ZSTANDARD_SUFFIXES = (".zst", ".zstd")
COMPRESSED_SUFFIXES = GZIP_SUFFIXES + ZSTANDARD_SUFFIXES
_EVENTS_SUFFIX = ".ndjson"
_CHUNK_BYTES = 1024 * 1024
# try_number-application_run_id, as `directory.launch_directory` names it.
_LAUNCH = re.compile(r"\d+-(?P<run_id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def is_lineage_file(name: str) -> bool:
    """Whether a file of this name, with or without its directory, is to be merged.

    By the custom of Hadoop, a name that begins with a dot or an underscore is of what is still being written.
    """
    if posixpath.basename(name).startswith(HIDDEN):
        return False
    return plain_name(name).endswith(_EVENTS_SUFFIX) or is_status_file(name)


def is_status_file(name: str) -> bool:
    """Whether a file of this name holds the status transitions of a launch, and no events."""
    return posixpath.basename(plain_name(name)) == TRANSITIONS_FILE


def application_of_launch(path: str) -> str | None:
    """Return the run id of the application whose launch a file lies in the directory of, None for other places."""
    match = _LAUNCH.fullmatch(posixpath.basename(posixpath.dirname(path)))
    return match["run_id"] if match is not None else None


def plain_name(name: str) -> str:
    """Return the name without what says how the file is compressed."""
    suffix = next(filter(name.endswith, COMPRESSED_SUFFIXES), "")
    return name.removesuffix(suffix)


def lines(stream: BinaryIO, name: str) -> Iterator[bytes | LineError]:
    """Return the lines of a whole file; of a torn one those that could be read, and a ``LineError`` after them."""
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
    """Return the content of a file, in chunks, decompressed by the ending of its name.

    :raises LineError: ``torn file``, after all that could be read
    """
    try:
        if name.endswith(GZIP_SUFFIXES):
            with gzip.GzipFile(fileobj=stream) as unzipped:
                # Not read, which keeps what it has when it finds the end missing.
                yield from iter(lambda: unzipped.read1(_CHUNK_BYTES), b"")
        elif name.endswith(ZSTANDARD_SUFFIXES):
            decompressor = zstandard.ZstdDecompressor()
            with decompressor.stream_reader(stream, read_across_frames=True, closefd=False) as reader:
                yield from iter(lambda: reader.read(_CHUNK_BYTES), b"")
        else:
            yield from iter(lambda: stream.read(_CHUNK_BYTES), b"")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LineError("torn file", f"its gzip is cut off or damaged: {error}") from None
    except zstandard.ZstdError as error:
        raise LineError("torn file", f"its Zstandard is damaged: {error}") from None
