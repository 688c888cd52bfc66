"""Finds the files of Spark's event logs and gives their lines, decompressed, as bytes (``EventLogFileReader``).

A log is one file (``app-1``, ``.inprogress`` while it grows) or a rolling directory ``eventlog_v2_<application>`` with
parts ``events_<number>_<application>``; either may carry the short name of a compression codec.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import zstandard

from spark_lineage.launch.directory import ROLLING
from spark_lineage.launch.line import LineError, LineSplitter

# A line, or why it cannot be read, and its file and number, from 1 on.
Line = tuple[str, bytes | LineError]

# Compressed, these are a few megabytes of text.
_CHUNK_BYTES = 64 * 1024
_PART = re.compile(r"events_(?P<number>\d+)_.*")
IN_PROGRESS = ".inprogress"
_SUFFIXES = (IN_PROGRESS, ".compact")
_FIRST = b'{"Event":'
_UNREADABLE = ("lz4", "lzf", "snappy")


class EventLogError(Exception):
    """An event log that cannot be read, with what to do about it."""


def find_event_logs(path: Path) -> list[Path]:
    """Return the logs at a path: a log itself, or those in a directory.

    :raises EventLogError: when there is no log
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise EventLogError(f"there is no event log at {path}; check spark.eventLog.dir of the application")
    if path.name.startswith(ROLLING):
        return [path]
    found = [each for each in sorted(path.iterdir()) if _is_log(each)]
    if not found:
        raise EventLogError(f"{path} holds no event log; check spark.eventLog.dir of the application")
    return found


def _is_of(path: Path, application_id: str) -> bool:
    """Whether a log is of an application: ``local-1``, ``local-1_2.zstd.inprogress`` (the second attempt)."""
    name = path.name.removeprefix(ROLLING)
    return re.match(rf"{re.escape(application_id)}(?:[_.]|\Z)", name) is not None


def logs_of(directory: Path, application_ids: Iterable[str]) -> list[Path]:
    """Return the logs of some applications in a directory that may hold those of others; of unknown ones none.

    :raises OSError: when the directory cannot be read
    """
    return [path for path in sorted(directory.iterdir()) if any(_is_of(path, each) for each in application_ids)]


def _is_log(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return path.name.startswith(ROLLING) if path.is_dir() else path.suffix not in {".ndjson", ".properties"}


def _parts(directory: Path) -> list[tuple[int, Path]]:
    """The parts of a rolling log with their numbers; one that was compacted stands for all before it."""
    numbered = sorted(
        (int(match["number"]), not path.name.endswith(".compact"), path)
        for path in directory.iterdir()
        if (match := _PART.fullmatch(path.name))
    )
    compacted = max((index for index, (_, is_whole, _) in enumerate(numbered) if not is_whole), default=0)
    return [(number, path) for number, _, path in numbered[compacted:]]


def codec_of(path: Path) -> str:
    """Return the short name of the codec that a file is compressed with, empty for none."""
    name = path.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    extension = name.rpartition(".")[2]
    return extension if extension in {"zstd", *_UNREADABLE} else ""


class GrowingFile:
    """One file of a log: gives the lines that were added since it was last asked. It stays open until it is closed.

    Spark ends a Zstandard frame whenever it flushes (``EventLogFileWriter.writeLine``); a frame or a line without its
    end waits. When the context stops Spark renames the file, which an open one does not mind.

    :raises EventLogError: for a codec that is not read here
    :raises OSError: when the file cannot be opened
    """

    def __init__(self, path: Path) -> None:
        codec = codec_of(path)
        if codec in _UNREADABLE:
            raise EventLogError(
                f"{path} is compressed with {codec}, which is not read here; set "
                "spark.eventLog.compression.codec=zstd, Spark's default since 3.0, or spark.eventLog.compress=false"
            )
        self.path = path
        self._number = 0
        self._splitter = LineSplitter()
        frames = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True) if codec == "zstd" else None
        self._decompress = frames.decompress if frames is not None else bytes
        self._is_damaged = False
        self.is_behind = False
        """Whether there was more than was to be read at once."""
        self._stream = path.open("rb", buffering=0)

    def lines(self, at_most: float = math.inf) -> Iterator[Line]:
        """Return the lines that were added, and of a file whose writer was killed those before the cut.

        :param at_most: about how many bytes of the file are read
        :raises OSError: when the file cannot be read
        """
        self.is_behind = True
        while at_most > 0:
            chunk = b"" if self._is_damaged else self._stream.read(_CHUNK_BYTES)
            if not chunk:
                self.is_behind = False
                return
            at_most -= len(chunk)
            try:
                found = self._splitter.feed(self._decompress(chunk))
            except zstandard.ZstdError:
                self._is_damaged = True
                continue
            yield from self._numbered(found)

    def finish(self) -> Iterator[Line]:
        """Return what is left, to the last line, torn or not, and close the file.

        :raises OSError: when the file cannot be read
        """
        with self._stream:
            yield from self.lines()
            yield from self._numbered(self._splitter.finish())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _numbered(self, lines: Iterable[bytes | LineError]) -> Iterator[Line]:
        for line in lines:
            self._number += 1
            yield f"{self.path}:{self._number}", line


class GrowingEventLog:
    """A log of one file or of several, read while Spark writes it: each call gives what was added.

    :param path: of the log; ``.inprogress`` may go from its name later
    :param remove: what a part is given to once it was read, if it may go: a stream may run for months
    """

    def __init__(self, path: Path, *, remove: Callable[[Path], object] | None = None) -> None:
        self._path = path
        self._remove = remove
        self._number = -1
        self._file: GrowingFile | None = None

    def lines(self, at_most: float = math.inf) -> Iterator[Line]:
        """Return the lines that were added, each with its place.

        :param at_most: about how many bytes are read of each file
        :raises EventLogError: for a codec that is not read here
        :raises OSError: when a file cannot be read
        """
        if self._file is not None:
            yield from self._file.lines(at_most)
        parts = _parts(self._path) if self._path.is_dir() else [(0, self._path)]
        for number, part in parts:
            if self._file is not None and self._file.is_behind:
                return
            if number > self._number:
                # Only now it is certain that nothing more comes to the part before.
                yield from self._finish_part()
                self._file, self._number = GrowingFile(part), number
                yield from self._file.lines(at_most)

    def finish(self) -> Iterator[Line]:
        """Return all that is left, and close the files.

        :raises EventLogError: for a codec that is not read here
        :raises OSError: when a file cannot be read
        """
        yield from self.lines()
        yield from self._finish_part()

    def close(self) -> None:
        """Close what is open, when nothing more is going to be read."""
        if self._file is not None:
            self._file.close()

    def _finish_part(self) -> Iterator[Line]:
        if self._file is not None:
            yield from self._file.finish()
            if self._remove is not None:
                self._remove(self._file.path)
            self._file = None
