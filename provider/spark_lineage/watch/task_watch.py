"""Keeps the timeline of one launch: our own transitions, and those of the sources of status."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from pathlib import Path

import msgspec
from msgspec import structs

from spark_lineage.launch.bounded_run import LINEAGE_FILES, BoundedRun, Deadline
from spark_lineage.launch.directory import APPENDING, TRANSITIONS_FILE, open_regular, read_small
from spark_lineage.launch.line import LineError, decode_transition
from spark_lineage.launch.log import Log
from spark_lineage.merge.task_numbers import TaskNumbers
from spark_lineage.merge.transition import (
    ENDED,
    Report,
    Status,
    StatusLedger,
    StatusReport,
    StatusSummary,
    StatusTransition,
    Subject,
    report_of,
)
from spark_lineage.secrets.redaction import redact
from spark_lineage.watch.sources import Sources, Watcher, answer_of

log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder()
_AIRFLOW, _SUBMIT = "Airflow", "spark-submit"
_PROGRESS_SECONDS = 60.0
# Between two answers of a driver's UI of which only the progress is news.
_UI_SECONDS = 20.0
_tasks = attrgetter("tasks")


class StatusLog:
    """The transitions of one launch, in memory and in a file beside its lineage, for a later process.

    :param directory: of the launch; nothing is written while it is not there
    :param on_transition: called with each transition, in their order, by the thread that brings it
    """

    def __init__(self, directory: Path | None, on_transition: Callable[[StatusTransition], object]) -> None:
        self._file = directory / TRANSITIONS_FILE if directory is not None else None
        self._on_transition = on_transition
        self._ledger = StatusLedger()
        self._numbers: dict[tuple[str, str], TaskNumbers] = {}
        # Reentrant: on_kill runs as the handler of a signal, wherever the main thread is.
        self._lock = threading.RLock()
        self._unwritten: list[StatusTransition] = []
        self._writing = threading.Lock()

    def tell(self, report: Report) -> None:
        """Take what a source says; what it, or another, has said already changes nothing."""
        with self._lock:
            if isinstance(report, TaskNumbers):
                # A log that is read again, by the next try, begins anew.
                self._numbers[report.key] = max(self._numbers.get(report.key, report), report, key=_tasks)
                return
            kept = len(self._ledger.transitions)
            transition = self._ledger.add(report)
            if transition is None:
                return
            if len(self._ledger.transitions) > kept:
                self._unwritten.append(transition)
            self._on_transition(transition)

    def write(self) -> None:
        """Write down what is new, however long that takes: a report itself does not wait for a disk."""
        with self._writing:
            with self._lock:
                transitions, self._unwritten = self._unwritten, []
            if not transitions or self._file is None:
                return
            lines = _encoder.encode_lines(map(redacted, transitions))
            try:
                if self._file.parent.is_dir():
                    with os.fdopen(open_regular(self._file, APPENDING), "ab", buffering=0) as stream:
                        stream.write(lines)
            except OSError as error:
                log.debug("A transition is not on disk: %s", error)

    def flush(self, deadline: Deadline | float) -> None:
        """Write down what is new, as long as there is time: the disk may hang."""
        BoundedRun(self.write, "spark-lineage-files").wait(deadline)

    def restore(self, transitions: Iterable[StatusTransition]) -> None:
        """Take over what an earlier try kept, without passing it on."""
        with self._lock:
            for one in transitions:
                self._ledger.add(report_of(one))

    def status(self, subject: Subject, subject_id: str) -> Status | None:
        """Return the present status of an application or a driver."""
        with self._lock:
            return self._ledger.status(subject, subject_id)

    def has_uncaught_failure(self) -> bool:
        """Whether something failed in an application, after which nothing of it succeeded any more."""
        with self._lock:
            return self._ledger.has_uncaught_failure()

    def summary(self) -> StatusSummary:
        """Return what is known now."""
        with self._lock:
            numbers = tuple(self._numbers[key] for key in sorted(self._numbers))
            return StatusSummary(tuple(self._ledger.transitions), self._ledger.summed(), numbers=numbers)


def redacted(one: StatusTransition) -> StatusTransition:
    """Return a transition as it may be kept."""
    return structs.replace(one, detail=redact(one.detail), exception=redact(one.exception))


def read_transitions(directory: Path) -> Iterator[StatusTransition]:
    """Return the transitions that were kept beside the lineage of a launch; torn lines are skipped.

    :raises OSError: when the file is there and cannot be read
    """
    file = directory / TRANSITIONS_FILE
    for line in read_small(file).splitlines() if os.path.lexists(file) else ():
        try:
            yield decode_transition(line)
        except LineError as error:
            log.debug("Set aside a line of %s: %s", file, error)


class TaskWatch:
    """The status of one launch, from its submission, or from its re-attachment, to its end.

    :param has_event_log: whether the event log is going to report the SparkJobs, so that the driver is polled late
    :param on_transition: called with each transition, from any thread
    """

    def __init__(
        self,
        sources: Sources,
        directory: Path,
        *,
        deploy_mode: str,
        interval_seconds: float,
        has_event_log: bool = False,
        on_transition: Callable[[StatusTransition], object],
        logger: Log,
    ) -> None:
        self.log = StatusLog(directory, on_transition)
        self.driver_id = ""
        self._directory = directory
        self._sources = sources
        self.is_client = deploy_mode == "client"
        self._logger = logger
        self._logged = ""
        self._log_next = time.monotonic() + _PROGRESS_SECONDS
        if not has_event_log:
            sources.ui.first_seconds = 1.0
        self._watcher = Watcher(sources.while_running, self._take, interval_seconds=interval_seconds)
        self.start, self.stop = self._watcher.start, self._watcher.stop

    def ask_ui(self, *, is_logged: bool) -> None:
        """Have the driver's UI asked less often where an event log says the same: its answers cost the driver more."""
        self._sources.ui.least_seconds = _UI_SECONDS if is_logged else 0.0

    def submitted(self, driver_id: str) -> None:
        """Note which driver was submitted: a process of this machine, or what its cluster calls it."""
        self.driver_id = driver_id
        self._tell("SUBMITTED", _SUBMIT)

    def reattached(self, driver_id: str, try_number: int) -> None:
        """Take over the driver of an earlier try, with what that try knew."""
        self.driver_id = driver_id
        self.log.restore(LINEAGE_FILES.use(lambda: list(read_transitions(self._directory))))
        self._tell("REATTACHED", _AIRFLOW, f"by try {try_number}")

    def resume(self, driver_id: str, transitions: Iterable[StatusTransition]) -> None:
        """Go on with a driver, of which these transitions are known."""
        self.driver_id = driver_id
        self.log.restore(transitions)

    def kill_asked(self, why: str) -> None:
        """Note that the task is to be killed."""
        if self.driver_id:
            self._tell("KILLING", _AIRFLOW, why)

    def ask_at_the_end(self, deadline: Deadline | float) -> None:
        """Stop watching, and ask each source for its last word, as far as the time allows."""
        self.stop()
        if not self._sources.at_the_end:
            return
        is_over = threading.Event()

        def ask() -> None:
            states = (report for source in self._sources.at_the_end for report in answer_of(source) or ())
            numbers = () if self.log.summary().numbers else self._sources.numbers()
            for report in chain[Report](states, numbers):
                if not is_over.is_set():
                    self.log.tell(report)

        # A thread, because no limit of an HTTP client holds for all that a server, a resolver or a proxy may do.
        BoundedRun(ask, "spark-lineage-status").wait(deadline)
        is_over.set()

    def log_tail(self, deadline: Deadline | float) -> Mapping[str, str]:
        """Return the last lines of a remote driver's output, as far as the time allows."""
        found: dict[str, str] = {}
        if not self.is_client:
            BoundedRun(lambda: found.update(self._sources.log_tail()), "spark-lineage-log").wait(deadline)
        return dict(found)

    def ended(self, status: Status, exit_code: int | None, error: str, applications: Iterable[str]) -> None:
        """Note how the task ended: in client mode, so did the driver (``exit_code``), and with it its applications.

        In cluster mode only the cluster manager reports the driver's end; without its report the end is unknown.
        """
        if not self.driver_id:
            return
        source = _SUBMIT if self.is_client else _AIRFLOW
        if self.is_client:
            self._tell(status, source, "" if exit_code is None else f"exit code {exit_code}", error)
        elif status == "FINISHED":
            self._tell(status, source, "the Spark provider saw its end")
        elif status == "FAILED" and self.driver_status not in ENDED:
            self._tell("UNKNOWN", source, "not watched any more", error)
        end = self.log.status("DRIVER", self.driver_id)
        if end is not None and end in ENDED:
            self.end_applications(end, source, "the driver has ended", self.applications(applications))

    def applications(self, others: Iterable[str]) -> list[str]:
        """Return the ids of all applications in the timeline, and of others, sorted."""
        return sorted({*others, *(one.subject_id for one in self._transitions("APPLICATION"))})

    def end_applications(self, status: Status, source: str, detail: str, applications: Iterable[str]) -> None:
        """Report the end of those whose end no source has reported."""
        for application_id in applications:
            if self.log.status("APPLICATION", application_id) not in ENDED:
                self._tell(status, source, detail, application_id=application_id)

    @property
    def driver_status(self) -> Status | None:
        """What the cluster manager says of the driver; None in client mode, where there is no such word."""
        return None if self.is_client else self.log.status("DRIVER", self.driver_id)

    @property
    def has_run(self) -> bool:
        """Whether the cluster manager has seen the driver run, or succeed."""
        return any(one.new_status in {"RUNNING", "FINISHED"} for one in self._transitions("DRIVER"))

    @property
    def driver_error(self) -> str:
        """Why the driver failed, or where it was lost, in the cluster manager's words."""
        ends = [one for one in self._transitions("DRIVER") if one.new_status in {*ENDED, "UNKNOWN"}]
        return " ".join(part for one in ends[-1:] for part in (one.exception or one.detail, f"({one.source})") if part)

    def summary(self, error: str, application_id: str | None, ui_url: str | None = None) -> StatusSummary:
        """Return what is known, and where to read on."""
        summary = self._sources.linked(self.log.summary(), application_id)
        return structs.replace(summary, error=error, ui_url=ui_url or summary.ui_url)

    def _transitions(self, subject: Subject) -> list[StatusTransition]:
        return [one for one in self.log.summary().transitions if one.subject == subject]

    def _tell(
        self, status: Status, source: str, detail: str = "", exception: str = "", application_id: str = ""
    ) -> None:
        thing: tuple[Subject, str] = ("APPLICATION", application_id) if application_id else ("DRIVER", self.driver_id)
        report = StatusReport(*thing, status, datetime.now(UTC), source, detail=detail, exception=exception)
        self.log.tell(report)

    def _take(self, report: StatusReport) -> None:
        """Take a report, and log how far the jobs are, when that has changed, and at most every minute."""
        self.log.tell(report)
        now, progress = time.monotonic(), self._sources.ui.progress
        if now >= self._log_next and progress != self._logged:
            self._logger.info("Spark: %s", progress)
            self._logged, self._log_next = progress, now + _PROGRESS_SECONDS
