"""The files of Spark's event logs: where they are, and their lines, decompressed, whole or while Spark writes them.

A log is one file (``app-1``, ``.inprogress`` while it grows) or a rolling directory ``eventlog_v2_<application>`` with
parts ``events_<number>_<application>`` (``EventLogFileReader``); either may carry the short name of a compression
codec.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import zstandard

from spark_lineage.launch.directory import ROLLING, is_hole, open_to_read
from spark_lineage.launch.line import LineError, LineSplitter
from spark_lineage.plans.event_log_lines import Environment, decoded

# A line, or why it cannot be read, and its file and number, from 1 on.
Line = tuple[str, bytes | LineError]
Remove = Callable[[Path], object] | None

# Compressed, these are a few megabytes of text.
_CHUNK_BYTES = 64 * 1024
# The environment of an application is on one of its first lines.
HEAD_OF_LOG_BYTES = 2 * 1024 * 1024
_PART = re.compile(r"events_(?P<number>\d+)_.*")
IN_PROGRESS = ".inprogress"
_ENDINGS = re.compile(r"(?:\.compact)?(?:\.inprogress)?\Z")
_UNREADABLE = ("lz4", "lzf", "snappy")


class EventLogError(Exception):
    """An event log that cannot be read, with what to do about it; ``reason`` is a short fixed text for counting."""

    def __init__(self, text: str, reason: str = "no event log") -> None:
        super().__init__(text)
        self.reason = reason


def find_event_logs(path: Path) -> list[Path]:
    """Return the logs at a path: a log itself, or those in a directory; raises ``EventLogError`` without one."""
    if path.is_file() or (path.is_dir() and path.name.startswith(ROLLING)):
        return [path]
    if not path.is_dir():
        raise EventLogError(f"there is no event log at {path}; check spark.eventLog.dir of the application")
    found = event_logs_in(path)
    if not found:
        raise EventLogError(f"{path} holds no event log; check spark.eventLog.dir of the application")
    return found


def event_logs_in(directory: Path) -> list[Path]:
    """Return the logs in a directory, by name; raises ``OSError`` where it cannot be read."""
    return _logs_in(directory, lambda one: is_event_log(one.name, is_directory=one.is_dir()))


def logs_of(directory: Path, application_ids: Iterable[str]) -> list[Path]:
    """Return the logs of some applications (``local-1``, ``local-1_2.zstd.inprogress``: its second attempt).

    :raises OSError: when the directory cannot be read
    """
    is_of = log_filter(application_ids)
    return _logs_in(directory, lambda one: is_of(one.name))


def _logs_in(directory: Path, is_wanted: Callable[[os.DirEntry[str]], bool]) -> list[Path]:
    """Return the files and directories that are wanted, by name: no links, no pipes and no devices."""
    # A directory may hold very many: the listing says what they are.
    with os.scandir(directory) as entries:
        files = (one for one in entries if one.is_file(follow_symlinks=False) or one.is_dir(follow_symlinks=False))
        return sorted(directory / one.name for one in files if is_wanted(one))


def log_filter(application_ids: Iterable[str]) -> Callable[[str], bool]:
    """Return what says of a name whether it is that of a log of one of some applications."""
    ids = "|".join(map(re.escape, application_ids))
    matches = re.compile(rf"(?:{ROLLING})?(?:{ids})(?:[_.]|\Z)").match
    return lambda name: bool(ids and matches(name))


def is_event_log(name: str, *, is_directory: bool) -> bool:
    """Whether what has this name in a directory of event logs is one."""
    if is_directory:
        return name.startswith(ROLLING)
    return not name.startswith(".") and not name.endswith((".ndjson", ".properties"))


def parts_of(names: Iterable[str]) -> list[tuple[int, str]]:
    """Return the parts of a rolling log with their numbers; one that was compacted stands for all before it."""
    numbered = sorted(
        (int(match["number"]), not name.endswith(".compact"), name)
        for name in names
        if (match := _PART.fullmatch(name))
    )
    compacted = max((index for index, (_, is_whole, _) in enumerate(numbered) if not is_whole), default=0)
    return [(number, name) for number, _, name in numbered[compacted:]]


class _Part:
    """One file of a log, which stays open: it may be renamed when the context stops.

    Spark ends a Zstandard frame whenever it flushes (``EventLogFileWriter.writeLine``); a frame or a line without its
    end waits.
    """

    def __init__(self, path: Path) -> None:
        codec = _ENDINGS.sub("", path.name).rpartition(".")[2]
        if codec in _UNREADABLE:
            raise EventLogError(
                f"{path} is compressed with {codec}, which is not read here; set "
                "spark.eventLog.compression.codec=zstd, Spark's default since 3.0, or spark.eventLog.compress=false",
                f"event log compressed with {codec}",
            )
        self.path = path
        self.is_behind = False
        """Whether there was more than was to be read at once."""
        self._number = 0
        self._splitter = LineSplitter()
        frames = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True) if codec == "zstd" else None
        self._decompress = frames.decompress if frames is not None else bytes
        self._is_damaged = False
        self._stream = open_to_read(path, buffering=0)
        self.close = self._stream.close

    def lines(self, at_most: float = math.inf) -> Iterator[Line]:
        """Return the lines that were added, and of a file whose writer was killed those before the cut."""
        self.is_behind = True
        while at_most > 0:
            chunk = b"" if self._is_damaged else self._stream.read(_CHUNK_BYTES)
            if not chunk:
                self.is_behind = False
                return
            at_most -= len(chunk)
            if is_hole(chunk):
                self._is_damaged = True
                continue
            try:
                found = self._splitter.feed(self._decompress(chunk))
            except zstandard.ZstdError:
                self._is_damaged = True
            else:
                yield from self._numbered(found)

    def finish(self) -> Iterator[Line]:
        """Return what is left, to the last line, torn or not, and close the file."""
        with self._stream:
            yield from self.lines()
            yield from self._numbered(self._splitter.finish())

    def _numbered(self, lines: Iterable[bytes | LineError]) -> Iterator[Line]:
        for line in lines:
            self._number += 1
            yield f"{self.path}:{self._number}", line


class GrowingEventLog:
    """A log of one file or of several, read while Spark writes it: each call returns what was added.

    Both calls raise ``EventLogError`` for a codec that is not read here, ``OSError`` when a file cannot be read.

    :param path: of the log; ``.inprogress`` may go from its name later
    :param remove: called with each part that was read and may go: a stream may run for months
    :param since: in epoch seconds: of what was written before, only the beginning is read, which describes the
        application
    """

    def __init__(self, path: Path, *, remove: Remove = None, since: float = 0.0) -> None:
        self._path = path
        self._remove = remove
        self._since = since
        self._number = -1
        self._part: _Part | None = None

    def lines(self, at_most: float = math.inf) -> Iterator[Line]:
        """Return the lines that were added, from about ``at_most`` bytes of each file."""
        if self._part is not None:
            yield from self._part.lines(at_most)
        is_rolling = self._path.is_dir()
        for number, name in parts_of(path.name for path in self._path.iterdir()) if is_rolling else [(0, "")]:
            if self._part is not None and self._part.is_behind:
                return
            if number > self._number:
                # Only now it is certain that nothing more comes to the part before.
                yield from self._finish_part()
                is_old = (self._path / name).stat().st_mtime < self._since
                if is_old and self._number >= 0:
                    self._number = number
                    continue
                self._part, self._number = _Part(self._path / name), number
                yield from self._part.lines(HEAD_OF_LOG_BYTES if is_old else at_most)
                if is_old:
                    self.close()
                    self._part = None

    def finish(self) -> Iterator[Line]:
        """Return all that is left, and close the files."""
        yield from self.lines()
        yield from self._finish_part()

    @property
    def is_behind(self) -> bool:
        """Whether there was more than was to be read at once."""
        return self._part is not None and self._part.is_behind

    def close(self) -> None:
        """Close what is open, when nothing more is going to be read."""
        if self._part is not None:
            self._part.close()

    def _finish_part(self) -> Iterator[Line]:
        if self._part is not None:
            yield from self._part.finish()
            if self._remove is not None:
                self._remove(self._part.path)
            self._part = None


def run_id_of(path: Path) -> str | None:
    """Return the OpenLineage run that an application was submitted as, empty for none, None where its log is too short.

    :raises EventLogError: for a codec that is not read here
    :raises OSError: when a file cannot be read
    """
    with closing(GrowingEventLog(path)) as log:
        for _, line in log.lines(HEAD_OF_LOG_BYTES):
            with suppress(LineError):
                event = decoded(line)
                if isinstance(event, Environment):
                    return event.openlineage.get("applicationRunId", "")
    return None
