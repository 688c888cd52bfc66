"""Folds files into parts, on executors: the state of each application in one file, never its events."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from spark_lineage.launch.directory import ROLLING
from spark_lineage.launch.line import LineCounts, LineDecoder, LineError, decode_transition
from spark_lineage.merge.execution import logged_run_id
from spark_lineage.merge.state import LineageState, application_run_id, encode_state
from spark_lineage.plans.event_log_files import IN_PROGRESS
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.lineage_files import (
    COMPRESSED_SUFFIXES,
    application_of_launch,
    is_status_file,
    lines,
    lines_of,
)

LOCAL = "file:"
"""What the URI of a file of a disk begins with: Python reads it; the JVM would only hand the bytes through."""

PART = "file string, application string, parent string, content binary, read bigint, set_aside map<string, bigint>"
"""The schema of ``Part``, in Spark's words."""

PART_OF_LOG = f"(/{ROLLING}[^/]*)/[^/]*$"
"""Matches a file of an event log in parts, which is a directory; for Python and for Java."""

_CHUNK_BYTES = 1024 * 1024
# Java writes no authority as three slashes in one place, and as one in another.
_NO_AUTHORITY = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*:)///")


class Piece(NamedTuple):
    """The lines of a file of a disk that begin in a range of its bytes; of a compressed file, or an event log, all."""

    path: str
    start: int
    end: int
    is_event_log: bool = False

    def lines(self) -> Iterator[bytes | LineError]:
        """Return its lines; raises ``OSError`` when the file cannot be read."""
        with Path(self.path.removeprefix(LOCAL)).open("rb") as stream:
            if self.path.endswith(COMPRESSED_SUFFIXES):
                yield from lines(stream, self.path)
            else:
                start, end = _next_line(stream, self.start), _next_line(stream, self.end)
                yield from lines_of(_between(stream, start, end), is_beginning=not start)


def _next_line(stream: BinaryIO, offset: int) -> int:
    """Return where the first line begins that does not begin before an offset."""
    if not offset:
        return 0
    # The line before may end with the very byte before.
    stream.seek(offset - 1)
    while (chunk := stream.readline(_CHUNK_BYTES)) and not chunk.endswith(b"\n"):
        pass
    return stream.tell()


def _between(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    stream.seek(start)
    while (left := end - stream.tell()) > 0 and (chunk := stream.read(min(left, _CHUNK_BYTES))):
        yield chunk


class Part(NamedTuple):
    """What one file, or a split of one, says of one application: its state, and the run that it names as its parent.

    A part without ``application`` has the counts of the lines of its file, by reason where they were set aside. One
    without ``content`` says whose run an application is that may have an event log.
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
        if piece.is_event_log:
            if piece.path.startswith(LOCAL):
                yield from _of_event_log(piece.path, Path(piece.path.removeprefix(LOCAL)))
            else:
                yield Part(piece.path, None, None, None, 0, {"event log too large": 1})
            continue
        # Of a file that is gone by now there is no part, which the driver sees.
        with suppress(FileNotFoundError):
            yield from _parts(piece.path, piece.lines(), decoder)


def fold_located(located: Iterable[bytes]) -> Iterator[Part]:
    """Fold what Spark has read: lines, or whole compressed files, each behind the URI of its file and a tab."""
    decoder = LineDecoder()
    for uri, group in groupby(located, key=lambda one: one[: one.index(b"\t")]):
        path = _path(uri)
        contents = (one[len(uri) + 1 :] for one in group)
        if path.endswith(COMPRESSED_SUFFIXES):
            # They are decompressed in Python, where a torn one fails no job.
            yield from _parts(path, (line for each in contents for line in lines(io.BytesIO(each), path)), decoder)
        else:
            yield from _parts(path, contents, decoder)


def fold_event_logs(located: Iterable[bytes]) -> Iterator[Part]:
    """Fold the files of event logs, whole, each behind its URI and a tab; those of a log come one after the other.

    The reader of event logs reads disks, so a log is on one for as long as it is read.
    """

    def path_of_log(one: bytes) -> str:
        path = _path(one[: one.index(b"\t")])
        return re.sub(PART_OF_LOG, r"\1", path).removesuffix(IN_PROGRESS)

    for path, group in groupby(located, key=path_of_log):
        with TemporaryDirectory(prefix="spark-lineage-") as home:
            log = Path(home, path.rpartition("/")[2])
            for one in group:
                uri, _, content = one.partition(b"\t")
                file = log if _path(uri).removesuffix(IN_PROGRESS) == path else log / _path(uri).rpartition("/")[2]
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)
            yield from _of_event_log(path, log)


def _path(uri: bytes) -> str:
    return _NO_AUTHORITY.sub(r"\1/", unquote(uri.decode()))


def _of_event_log(path: str, place: Path) -> Iterator[Part]:
    """Fold an event log; one that cannot be read counts as a line that is set aside."""
    collector = Collector()
    counts, logged = collector.log_counts, collector.state.logged
    try:
        # One that grew when it was listed may have ended since.
        collector.read_event_log(place if place.exists() else place.with_name(place.name + IN_PROGRESS))
        if not logged:
            counts.add("event log without an application")
    except Exception as error:
        # One log must not cost all the others theirs.
        reason = error.strerror if isinstance(error, OSError) else getattr(error, "reason", None)
        counts.add(reason or type(error).__name__)
    if logged:
        last = max(logged.values(), key=lambda one: one.application.run_id)
        parent = None if last.parent is None else last.parent.run_id
        yield Part(path, last.application.run_id, parent, encode_state(collector.state), None, None)
    yield Part(path, None, None, None, counts.read, counts.set_aside)


def _of_application(path: str, application: str, state: LineageState) -> Iterator[Part]:
    parent = state.parents.get(application)
    run_id = None if parent is None else parent.run_id
    yield Part(path, application, run_id, encode_state(state), None, None)
    if (run := state.runs.get(application)) is None:
        return
    for application_id in state.application_ids:
        # Listener and event log stamp its start with the time of one event of Spark's.
        logged = logged_run_id(application_id, round(run.first * 1000))
        yield Part(path, logged, run_id or application, None, None, None)


def _parts(path: str, its_lines: Iterable[bytes | LineError], decoder: LineDecoder) -> Iterator[Part]:
    counts = LineCounts()
    states = defaultdict[str, LineageState](LineageState)
    is_status, launch = is_status_file(path), application_of_launch(path)

    def add(line: bytes | LineError) -> None:
        if isinstance(line, LineError):
            raise line
        if is_status:
            if launch is None:
                raise LineError("of no launch")
            states[launch].transitions.add(decode_transition(line))
            return
        found = decoder.decode(line)
        states[application_run_id(found[0])].add(*found)

    for line in its_lines:
        try:
            add(line)
        except LineError as error:
            counts.add(error.reason)
        else:
            counts.read += 1
    for application, state in states.items():
        yield from _of_application(path, application, state)
    yield Part(path, None, None, None, counts.read, counts.set_aside)
