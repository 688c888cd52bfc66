"""Finds the files of Spark's event logs and gives their lines, decompressed, as bytes (``EventLogFileReader``).

A log is one file (``app-1``, ``.inprogress`` while it grows) or a rolling directory ``eventlog_v2_<application>`` with
parts ``events_<number>_<application>``; either may carry the short name of a compression codec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from spark_lineage.collect.line import LineError, LineSplitter

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK_BYTES = 1024 * 1024
_ROLLING = "eventlog_v2_"
_PART = re.compile(r"events_(?P<number>\d+)_.*")
_SUFFIXES = (".inprogress", ".compact")
_FIRST = b'{"Event":'
_UNREADABLE = ("lz4", "lzf", "snappy")


class EventLogError(Exception):
    """An event log that cannot be read, with what to do about it."""


def find_event_logs(path: Path) -> list[list[Path]]:
    """Give the logs at a path, each as its parts in order: a log itself, or a directory that holds logs.

    :raises EventLogError: when there is no log
    """
    if path.is_file():
        return [[path]]
    if not path.is_dir():
        raise EventLogError(f"there is no event log at {path}; check spark.eventLog.dir of the application")
    if path.name.startswith(_ROLLING):
        return [_parts(path)]
    found = [each for each in sorted(path.iterdir()) if _is_log(each)]
    if not found:
        raise EventLogError(f"{path} holds no event log; check spark.eventLog.dir of the application")
    return [_parts(each) if each.is_dir() else [each] for each in found]


def _is_of(path: Path, application_id: str) -> bool:
    """Whether a log is of an application: ``local-1``, ``local-1_2.zstd.inprogress`` (the second attempt)."""
    name = path.name.removeprefix(_ROLLING)
    return re.match(rf"{re.escape(application_id)}(?:[_.]|\Z)", name) is not None


def logs_of(directory: Path, application_ids: Iterable[str]) -> list[Path]:
    """Give the logs of some applications in a directory that may hold those of others; of unknown ones none.

    :raises OSError: when the directory cannot be read
    """
    return [path for path in sorted(directory.iterdir()) if any(_is_of(path, each) for each in application_ids)]


def _is_log(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return path.name.startswith(_ROLLING) if path.is_dir() else path.suffix not in {".ndjson", ".properties"}


def _parts(directory: Path) -> list[Path]:
    """The parts of a rolling log; one that was compacted stands for all before it."""
    numbered = sorted(
        (int(match["number"]), not path.name.endswith(".compact"), path)
        for path in directory.iterdir()
        if (match := _PART.fullmatch(path.name))
    )
    compacted = max((index for index, (_, is_whole, _) in enumerate(numbered) if not is_whole), default=0)
    return [path for _, _, path in numbered[compacted:]]


def codec_of(path: Path) -> str:
    """Give the short name of the codec that a file is compressed with, empty for none."""
    name = path.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    extension = name.rpartition(".")[2]
    return extension if extension in {"zstd", *_UNREADABLE} else ""


def lines_of(path: Path) -> Iterator[bytes | LineError]:
    """Give the lines of one file; of a file whose writer was killed, the whole lines before the cut.

    :raises EventLogError: for a codec that is not read here
    :raises OSError: when the file cannot be read
    """
    splitter = LineSplitter()
    with _opened(path) as stream:
        for chunk in _chunks(stream):
            yield from splitter.feed(chunk)
    yield from splitter.finish()


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while True:
        try:
            chunk = stream.read(_CHUNK_BYTES)
        except zstandard.ZstdError:
            # The last frame was cut short; what came before it has been given.
            return
        if not chunk:
            return
        yield chunk


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    codec = codec_of(path)
    if codec in _UNREADABLE:
        raise EventLogError(
            f"{path} is compressed with {codec}, which is not read here; set spark.eventLog.compression.codec=zstd, "
            "Spark's default since 3.0, or spark.eventLog.compress=false"
        )
    with path.open("rb") as file:
        if codec == "zstd":
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            yield cast("IO[bytes]", reader)
        else:
            yield file


def lines_of_all(parts: Iterable[Path]) -> Iterator[tuple[Path, int, bytes | LineError]]:
    """Give the lines of all parts of a log, each with its file and its number in it, from 1 on."""
    for part in parts:
        for number, line in enumerate(lines_of(part), 1):
            yield part, number, line
