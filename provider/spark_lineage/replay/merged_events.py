"""Reads merged events that were kept: beside the lineage of a launch, in an archive, or in a file of their own.

Everything here raises ``OSError`` when a file cannot be read.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from spark_lineage.archive.destination import ArchiveError, decode, event_directories
from spark_lineage.cli.output import InputError
from spark_lineage.deliver.stored_event import event_time, restore
from spark_lineage.launch.directory import ARCHIVE_POINTER, RUN_EVENTS_FILE
from spark_lineage.launch.line import MAX_LINE_BYTES, LineCounts, LineError
from spark_lineage.launch.log import Log

# Lines set aside that are named in the log; beyond that they are only counted.
_NAMED_LINES = 20
# What the Spark listener gives as the producer of its events and facets.
_LISTENER = "/integration/spark"
# Where a directory holds none of our own files: what `spark-lineage merge` and a file transport write.
_OTHER_FILES = ("*.ndjson", "*.jsonl")

log = Log(__name__)


class KeptEventsError(InputError):
    """A file or directory holds no merged events; the text says what it is, and what to do."""


@dataclass(frozen=True, slots=True)
class MergedEvent:
    """One merged event: what it is sorted by, the file and byte where its line begins, and the digest of its JSON."""

    time: datetime
    run_id: str
    event_type: str | None
    job: str
    path: Path
    offset: int
    digest: bytes

    @property
    def content(self) -> bytes:
        """Its JSON, read again."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            return stream.readline(MAX_LINE_BYTES + 1).strip()


def digest_of(content: bytes) -> bytes:
    """Return the same for the same content, however it is spelled: with spaces, escapes, or keys in another order."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(content), order="deterministic")
    except (msgspec.DecodeError, UnicodeEncodeError):
        # A lone surrogate, which Python's own reader takes.
        canonical = content
    return hashlib.sha256(canonical).digest()


def events_in(
    paths: Sequence[str], since: datetime | None = None, counts: LineCounts | None = None
) -> Iterator[MergedEvent]:
    """Return the merged events in files, directories and globs, in the order of files and lines.

    Of a directory the files of ours are read at any depth; where there are none, its NDJSON files; of one that the
    archive job wrote, the events that its pointer names, from the day of ``since``. A line that holds no ``RunEvent``
    is set aside. ``counts`` takes how many, by reason, and how many events were read, with those before ``since``.

    :raises KeptEventsError: when there is no file, and for a file of the Spark listener, which is to be merged first
    """
    counts = counts if counts is not None else LineCounts()
    for path in _files(paths, since):
        end = 0
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                offset, end = end, end + len(line)
                if not line.strip():
                    continue
                try:
                    event = _kept(line.strip(), path, offset)
                except LineError as error:
                    counts.add(error.reason)
                    if counts.set_aside_total <= _NAMED_LINES:
                        # The text of the error never quotes the line, which may hold a secret.
                        log.warning("Set aside %s:%d: %s", path, number, error)
                    continue
                counts.read += 1
                if since is None or event.time >= since:
                    yield event


def _files(paths: Sequence[str], since: datetime | None) -> list[Path]:
    found: dict[Path, Path] = {}
    for pattern in paths:
        path = Path(pattern)
        if (path / ARCHIVE_POINTER).is_file():
            files, missing = _files_of_archive(path, since), f"no event in the archive {pattern} yet"
        elif path.is_dir():
            files = sorted(path.rglob(RUN_EVENTS_FILE)) or sorted(
                {file for other in _OTHER_FILES for file in path.rglob(other)}
            )
            missing = f"no {RUN_EVENTS_FILE} and no NDJSON file in the directory {pattern}"
        elif path.exists():
            files, missing = [path], ""
        else:
            # Not Path.glob, which takes no absolute pattern.
            files = sorted(Path(each) for each in glob.glob(pattern, recursive=True))  # noqa: PTH207
            missing = f"there is no file {pattern}"
        files = [file for file in files if file.is_file()]
        if not files:
            raise KeptEventsError(missing or f"{pattern} is not a file: a pipe cannot be read twice")
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _files_of_archive(directory: Path, since: datetime | None) -> list[Path]:
    """Return the files of the current events; those of days before ``since`` need not be read."""
    place = directory / ARCHIVE_POINTER
    try:
        current = decode(place.read_bytes(), str(place))
    except ArchiveError as error:
        raise KeptEventsError(str(error)) from error
    first_day = "" if since is None else since.astimezone(UTC).date().isoformat()
    return [
        file
        for version in event_directories(current, first_day)
        for file in sorted((directory / version).glob("part-*"))
    ]


def _kept(line: bytes, path: Path, offset: int) -> MergedEvent:
    if len(line) > MAX_LINE_BYTES:
        raise LineError("oversized", f"at most {MAX_LINE_BYTES} bytes are read")
    try:
        event = restore(line)
    except ValueError as error:
        is_whole = line.startswith(b"{") and line.endswith(b"}")
        raise LineError("not a RunEvent" if is_whole else "not JSON (torn?)", str(error)) from error
    facet = (event.job.facets or {}).get("jobType")
    producers = (event.producer, facet.get("_producer") if isinstance(facet, dict) else None)
    if any(isinstance(each, str) and _LISTENER in each for each in producers):
        raise KeptEventsError(
            f"{path} holds events of the Spark listener, many for one task: merge them first "
            f"(spark-lineage merge {path} -o merged.ndjson), then replay the result"
        )
    return MergedEvent(
        time=event_time(event.eventTime),
        run_id=event.run.runId,
        event_type=event.eventType.value if event.eventType else None,
        job=f"{event.job.namespace} {event.job.name}",
        path=path,
        offset=offset,
        digest=digest_of(line),
    )
