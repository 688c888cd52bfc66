"""Reads lineage files, while they grow or whole, and folds what they hold into one state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from spark_lineage.collect.lineage_files import chunks, is_status_file, lines
from spark_lineage.launch.line import LineCounts, LineDecoder, LineError, LineSplitter, decode_transition
from spark_lineage.launch.log import Log
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.transition import StatusReport
from spark_lineage.plans.event_log import read_event_log

# Lines set aside that are named in the log; beyond that they are only counted, or garbage would fill the log.
_NAMED_LINES = 20

log = logging.getLogger(__name__)


class Collector:
    """What has been collected so far: the folded ``state`` and the ``counts`` of lines read and set aside."""

    def __init__(self, logger: Log = log) -> None:
        self.state = LineageState()
        self.counts = LineCounts()
        self.log_counts = LineCounts()
        self.event_log_directories: dict[str, str] = {}
        """``spark.eventLog.dir`` by application id, of applications that told it."""
        self.is_closed = False
        self._decoder = LineDecoder()
        self._log = logger

    def add(self, lines: Iterable[bytes | LineError], *, source: str, first_number: int = 1) -> int:
        """Fold lines; one that cannot be read is set aside, counted, and named by file and line.

        :return: the number of lines
        """
        number = first_number - 1
        fold = self._add_transition if is_status_file(source) else self._add_event
        for number, line in enumerate(lines, first_number):
            if self.is_closed:
                break
            try:
                if isinstance(line, LineError):
                    raise line
                fold(line)
            except LineError as error:
                self._set_aside(f"{source}:{number}", error)
            else:
                self.counts.read += 1
        return number - first_number + 1

    def _add_event(self, line: bytes) -> None:
        event, inputs, outputs = self._decoder.decode(line)
        facets = event.run.facets
        if facets is not None and facets.spark_properties is not None and facets.spark_applicationDetails is not None:
            application_id = facets.spark_applicationDetails.applicationId
            directory = facets.spark_properties.properties.event_log_directory
            if application_id and directory:
                self.event_log_directories[application_id] = directory
        self.state.add(event, inputs, outputs)

    def _add_transition(self, line: bytes) -> None:
        self.state.transitions.add(decode_transition(line))

    def read(self, stream: BinaryIO, *, source: str) -> None:
        """Fold a whole file, plain or compressed.

        :raises OSError: when it cannot be read
        """
        self.add(lines(stream, source), source=source)

    @property
    def application_ids(self) -> set[str]:
        """The Spark applications that told their ids."""
        return {one.application_id for one in self.state.applications.values() if one.application_id is not None}

    def read_event_log(self, path: Path, tell: Callable[[StatusReport], object] | None = None) -> None:
        """Fold what the event logs at a path say: one log, or a directory of them; ``tell`` takes what is of status.

        :raises EventLogError: when there is none, or none that can be read
        :raises OSError: when a file cannot be read
        """
        for execution in read_event_log(path, self.log_counts, tell=tell, is_over=lambda: self.is_closed):
            self.state.add_execution(execution)

    def close(self) -> None:
        """Take nothing more: what another thread is still reading comes too late, and ends there."""
        self.is_closed = True

    def _set_aside(self, place: str, error: LineError) -> None:
        self.counts.add(error.reason)
        total = self.counts.set_aside_total
        if total <= _NAMED_LINES:
            # The text of the error never quotes the line, which may hold a secret.
            self._log.warning("Set aside %s: %s", place, error)
        if total == _NAMED_LINES:
            self._log.warning("Further lines that cannot be read are only counted.")


class DirectoryCollector(Collector):
    """Collects the lineage files of a directory while the driver appends to them."""

    def __init__(self, directory: Path, logger: Log = log) -> None:
        super().__init__(logger)
        self.directory = directory
        self._files: dict[Path, _Growing] = {}

    def poll(self) -> None:
        """Fold the lines that were finished since the last call; a line without its newline waits.

        :raises OSError: when a file is there and cannot be read
        """
        for path in sorted(self.directory.glob("*.ndjson")):
            file = self._files.setdefault(path, _Growing())
            with path.open("rb") as stream:
                stream.seek(file.offset)
                for chunk in chunks(stream, path.name):
                    if self.is_closed:
                        return
                    file.offset += len(chunk)
                    self._add_to(file, file.splitter.feed(chunk), path)

    def finish(self) -> None:
        """Fold what is left, to the last line, torn or not."""
        self.poll()
        for path, file in sorted(self._files.items()):
            self._add_to(file, file.splitter.finish(), path)

    def _add_to(self, file: _Growing, lines: Iterable[bytes | LineError], path: Path) -> None:
        file.lines += self.add(lines, source=str(path), first_number=file.lines + 1)


class _Growing:
    """How far a growing file has been read."""

    def __init__(self) -> None:
        self.offset = 0
        self.lines = 0
        self.splitter = LineSplitter()
