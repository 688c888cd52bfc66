"""Reads lineage files and event logs, complete or while they grow, and folds them into one state."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from spark_lineage.launch.directory import (
    EVENT_LOG_DIRECTORY,
    OWN_EVENT_LOGS,
    ROLLING,
    NoRegularFileError,
    is_hole,
    local_directory,
    open_to_read,
)
from spark_lineage.launch.line import LineCounts, LineDecoder, LineError, LineSplitter, decode_transition
from spark_lineage.launch.log import Guard, Log
from spark_lineage.launch.retention import remove_event_logs, remove_part
from spark_lineage.merge.execution import Execution
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.transition import Report
from spark_lineage.plans.event_log import EventLogError, FollowedEventLog, read_event_log
from spark_lineage.plans.event_log_files import IN_PROGRESS, event_logs_in, logs_of, run_id_of
from spark_lineage.plans.session import ConnectSession
from spark_lineage.submission.lineage_files import is_status_file, lines

if TYPE_CHECKING:
    from spark_lineage.launch.launch import Launch

# Lines set aside that are named in the log; beyond that they are only counted, or garbage would fill the log.
_NAMED_LINES = 20
_CHUNK_BYTES = 1024 * 1024
# The largest difference between the clocks of this machine, of drivers and of file systems.
_SKEW_SECONDS = 300.0
_TIMED_VERSION = 7

log = Log(__name__)


class Collector:
    """The collected lineage so far: the folded ``state`` and the ``counts`` of lines read and set aside."""

    def __init__(self, logger: Log = log) -> None:
        self.state = LineageState()
        self.counts = LineCounts()
        self.log_counts = LineCounts()
        self.event_log_directories: dict[str, str] = {}
        """``spark.eventLog.dir`` by application id, of applications that reported it."""
        self.is_closed = False
        self._decoder = LineDecoder()
        self._log = logger

    def add(
        self, lines: Iterable[bytes | LineError], *, source: str, first_number: int = 1, is_status: bool = False
    ) -> int:
        """Fold lines, and return how many; one that cannot be read is set aside, counted and named by file and line.

        :param is_status: whether they are transitions, and no events
        """
        number = first_number - 1
        for number, line in enumerate(lines, first_number):
            if self.is_closed:
                break
            try:
                if isinstance(line, LineError):
                    raise line
                if is_status:
                    self.state.transitions.add(decode_transition(line))
                else:
                    self._add_event(line)
            except LineError as error:
                self._set_aside(f"{source}:{number}", error)
            else:
                self.counts.read += 1
        return number - first_number + 1

    def _add_event(self, line: bytes) -> None:
        found = self._decoder.decode(line)
        facets = found[0].run.facets
        if facets is not None and facets.spark_properties is not None and facets.spark_applicationDetails is not None:
            application_id = facets.spark_applicationDetails.applicationId
            directory = facets.spark_properties.properties.event_log_directory
            if application_id and directory:
                self.event_log_directories[application_id] = directory
        self.state.add(*found)

    def read(self, stream: BinaryIO, *, source: str) -> None:
        """Fold a whole file, plain or compressed.

        :raises OSError: when it cannot be read
        """
        self.add(lines(stream, source), source=source, is_status=is_status_file(source))

    @property
    def application_ids(self) -> set[str]:
        """The Spark applications that reported their ids."""
        return self.state.application_ids or {application_id for application_id, _ in self.state.logged}

    def read_event_log(self, path: Path, report: Callable[[Report], object] | None = None) -> None:
        """Fold what the event logs at a path say: one log, or a directory of them; ``report`` takes those of status.

        :raises EventLogError: when there is none, or none that can be read
        :raises OSError: when a file cannot be read
        """
        read = partial(
            read_event_log, report=report, describe=self.state.add_application, is_over=lambda: self.is_closed
        )
        self.fold(read(path, self.log_counts))

    def fold(self, executions: Iterable[Execution]) -> None:
        """Fold what an event log says."""
        for execution in executions:
            self.state.add_execution(execution)

    def close(self) -> None:
        """Take no more lines; another thread that is still reading ends."""
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
        self.source = "directory"
        """How the lineage files come into it."""
        self._files: dict[Path, _Growing] = {}

    def poll(self) -> None:
        """Fold the lines that were finished since the last call; a line without its newline waits.

        :raises OSError: when a file is there and cannot be read
        """
        for path in sorted(self.directory.glob("*.ndjson")):
            file = self._files.setdefault(path, _Growing())
            if file.is_over:
                continue
            try:
                self._read_on(file, path)
            except (NoRegularFileError, LineError) as error:
                file.is_over = True
                why = error if isinstance(error, LineError) else LineError("no file", f"{error.strerror}")
                self._add_to(file, [why], path)

    def _read_on(self, file: _Growing, path: Path) -> None:
        with open_to_read(path) as stream:
            if stream.seek(0, SEEK_END) < file.offset:
                self._add_to(file, [LineError("torn file", f"it begins anew, {file.offset} bytes were read")], path)
                file.offset, file.splitter = 0, LineSplitter()
            stream.seek(file.offset)
            for chunk in iter(lambda: stream.read(_CHUNK_BYTES), b""):
                if self.is_closed:
                    break
                if is_hole(chunk):
                    raise LineError("torn file", f"nothing was written from byte {file.offset} on")
                file.offset += len(chunk)
                self._add_to(file, file.splitter.feed(chunk), path)

    def finish(self) -> None:
        """Fold what is left, to the last line, torn or not."""
        self.poll()
        for path, file in sorted(self._files.items()):
            self._add_to(file, file.splitter.finish(), path)

    def _add_to(self, file: _Growing, lines: Iterable[bytes | LineError], path: Path) -> None:
        self.counts.sources.add(self.source)
        file.lines += self.add(lines, source=str(path), first_number=file.lines + 1)


class _Growing:
    def __init__(self) -> None:
        self.offset = self.lines = 0
        self.is_over = False
        self.splitter = LineSplitter()


class FollowedEventLogs:
    """Folds into ``collector`` what the driver of a launch logs, in our directory, in the user's, or in the program's.

    The listener names the applications that logs are looked for. Where it says nothing, they are those that were
    submitted as the launch's run.

    :param report: called with each report of status in a log
    :param is_removing: whether our log goes when it was read
    :param copies: names of logs that lie with ours, and were copied from elsewhere
    :param pull: copies what was added to them
    """

    def __init__(
        self,
        collector: DirectoryCollector,
        report: Callable[[Report], object],
        launch: Launch,
        *,
        is_removing: bool = True,
        copies: Container[str] = (),
        pull: Callable[[], object] = lambda: None,
    ) -> None:
        self._collector = collector
        self._pull = pull
        self._copies = copies
        self._ours = Path(launch.directory) / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
        # Places with a URL lie elsewhere, or are read from there.
        self._elsewhere = {place for place in launch.event_logs if "://" in place}
        # A server's directories are left out: only its own log is read.
        places = [] if launch.session_id else [place for place in launch.event_logs if place not in self._elsewhere]
        self._directories = dict.fromkeys((self._ours, *map(Path, places)))
        self._printed: dict[Path, None] = {}
        self._printed_ids: tuple[str, ...] = ()
        self._is_expected = bool(launch.event_logs)
        self._is_removing = is_removing
        self._run_id = launch.application_run_id
        self._session_id = launch.session_id
        self._earliest = earliest_of_run(self._run_id)
        self._report = report
        self._logs: dict[str, FollowedEventLog] = {}
        self.found_for: set[str] = set()
        """The applications whose log was found."""
        self._others: set[Path] = set()
        """Logs of other runs, which are not looked into again."""
        self.is_followed = False
        """Whether what the applications do is read from a log: the listener is not the only witness."""

    def look_into(self, directories: Iterable[str], application_ids: Iterable[str]) -> None:
        """Look for logs of some applications where the driver's log names a directory.

        The program can print the same line, so no other file is read there.
        """
        self._printed_ids = tuple(application_ids)
        for directory in directories:
            if "://" in directory:
                # The log mirror copies it from there.
                continue
            path = Path(directory)
            self._printed[path.parent if path.name.startswith(ROLLING) else path] = None

    def poll(self) -> None:
        """Fold what was added since the last call; trouble is left to the end."""
        try:
            # The user's own directory may hold many logs: it is looked through until that of each application is found.
            if not self.found_for or not self._collector.application_ids <= self.found_for:
                self._find()
            for one in self._logs.values():
                self._collector.fold(one.poll())
            self.is_followed = bool(self._logs)
        except (EventLogError, OSError) as error:
            self.is_followed = False
            log.debug("The event log cannot be read yet: %s", error)

    def finish(self, guard: Guard, *, is_kept: bool = False) -> None:
        """Fold what is left, to the last line; a log of ours has then served its purpose.

        :param is_kept: whether a log of ours, and its directory, stay, because a driver may still write there
        """
        with guard("Some lineage may be missing, because the event log cannot be read", can_fail=False):
            self._find()
        for one in self._logs.values():
            with (
                guard("Some lineage may be missing, because an event log cannot be read", can_fail=False),
                closing(one),
            ):
                self._collector.fold(one.finish())
        if self._is_removing and not (is_kept or self._collector.is_closed):
            with guard("An event log is not removed", can_fail=False):
                remove_event_logs(self._ours.parent.parent, self._collector.application_ids)

    @property
    def is_missing(self) -> bool:
        """Whether a log is expected, and none is followed, or not that of each application."""
        return (self._is_expected and not self._logs) or bool(self.missing)

    @property
    def missing(self) -> set[str]:
        """The applications whose log is expected or was reported, and was not found."""
        told = self._collector.event_log_directories.keys()
        known = self._collector.state.application_ids
        return (known if self._is_expected else known & told) - self.found_for

    def _find(self) -> None:
        for application_id in self._collector.state.application_ids:
            for path in self._logs_of(application_id):
                self.found_for.add(application_id)
                self._follow(path)
        has_listener = bool(self._collector.state.application_ids)
        if not has_listener:
            self.found_for |= self._collector.application_ids
        for path in self._logs_of_run([self._ours] if has_listener else [*self._directories, *self._printed]):
            self._follow(path)

    def _follow(self, path: Path) -> None:
        name, collector = path.name.removesuffix(IN_PROGRESS), self._collector
        if name not in self._logs:
            if name not in self._copies:
                collector.counts.sources.add("directory")
            is_to_go = self._is_removing and path.parent == self._ours
            self._logs[name] = FollowedEventLog(
                path,
                collector.log_counts,
                report=self._report,
                describe=collector.state.add_application,
                is_over=lambda: collector.is_closed,
                remove=partial(remove_part, self._ours.parent.parent) if is_to_go else None,
                session=ConnectSession(self._session_id, self._earliest) if self._session_id else None,
                pull=self._pull,
            )

    def _logs_of_run(self, directories: Iterable[Path]) -> Iterator[Path]:
        """Return the logs of applications that were submitted as the launch's run: all of ours."""
        for directory in filter(self._is_readable, directories):
            is_printed = directory not in self._directories
            logs = logs_of(directory, self._printed_ids) if is_printed else event_logs_in(directory)
            for path in {*logs} - self._others:
                with suppress(FileNotFoundError, EventLogError):
                    if self._session_id:
                        yield path
                        continue
                    is_older = path.stat().st_mtime < self._earliest
                    run_id = self._run_id if directory == self._ours else "" if is_older else run_id_of(path)
                    if run_id == self._run_id:
                        yield path
                    elif run_id is not None:
                        self._others.add(path)

    def _logs_of(self, application_id: str) -> Iterator[Path]:
        """Return the logs of an application, where it says that they are, or else where they are expected."""
        told = self._collector.event_log_directories.get(application_id, "")
        # Our own directory is reported as it was set, with the variable in it.
        local = local_directory(told) if "${" not in told else None
        is_here = local is not None and Path(local).as_uri() not in self._elsewhere
        places = [self._ours, Path(str(local))] if is_here else [*self._directories, *self._printed]
        for directory in filter(self._is_readable, places):
            yield from logs_of(directory, [application_id])

    def _is_readable(self, directory: Path) -> bool:
        """Whether there is a directory, and in the place of ours no link of the program's."""
        is_linked = directory == self._ours and any(each.is_symlink() for each in (self._ours, self._ours.parent))
        return directory.is_dir() and not is_linked


def earliest_of_run(run_id: str) -> float:
    """Return when something may be of a run, in epoch seconds: its id is a UUID with a time (RFC 9562); else from 0."""
    with suppress(ValueError):
        if (identity := UUID(run_id)).version == _TIMED_VERSION:
            return max(0.0, (identity.int >> 80) / 1000 - _SKEW_SECONDS)
    return 0.0
