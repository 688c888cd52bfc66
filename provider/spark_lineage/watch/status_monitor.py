"""The status of one launch, from its submission to its end: reports of sources and of the task become transitions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import json, structs

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.bounded_run import BRIEF_SECONDS, LINEAGE_FILES, BoundedRun, Deadline
from spark_lineage.launch.directory import TRANSITIONS_FILE, append_private
from spark_lineage.launch.launch import read_transitions, storable_transitions
from spark_lineage.launch.log import Log, log_trouble
from spark_lineage.merge.transition import (
    ENDED,
    Report,
    Status,
    StatusLedger,
    StatusReport,
    StatusSummary,
    StatusTransition,
    Subject,
    TaskNumbers,
    report_of,
)
from spark_lineage.watch.dialect import Dialect, converse
from spark_lineage.watch.sources import Sources

log = Log(__name__)
AIRFLOW, SUBMIT = "Airflow", "spark-submit"
_LEAST_SECONDS, _STOP_SECONDS, _PROGRESS_SECONDS = 0.05, 0.8, 60.0


class StatusMonitor:
    """Asks the sources of one launch while it runs, each in its own time, in a thread that begins with the first one.

    :param directory: of the launch; nothing is written without it
    :param has_event_log: whether the event log is going to report the SparkJobs, so that the driver is asked late
    :param on_transition: called with each transition, in their order, by the thread that brings it
    """

    def __init__(
        self,
        sources: Sources,
        directory: Path,
        *,
        interval_seconds: float,
        has_event_log: bool = False,
        on_transition: Callable[[StatusTransition], object],
        logger: Log,
    ) -> None:
        self.driver_id = ""
        self.is_client = not sources.endpoints.is_cluster
        self._directory = directory
        self._sources = sources
        self._interval_seconds = interval_seconds
        self._on_transition = on_transition
        self._logger = logger
        self._ledger = StatusLedger()
        self._numbers: dict[tuple[str, str], TaskNumbers] = {}
        # Reentrant: where no thread can be started, on_kill notes the kill in the main thread, wherever that is.
        self._lock = threading.RLock()
        self._unwritten: list[StatusTransition] = []
        self._writing = threading.Lock()
        self._logged, self._log_next = "", time.monotonic() + _PROGRESS_SECONDS
        if not has_event_log:
            sources.ui.first_seconds = Dialect.first_seconds
        for source in sources.while_running:
            source.wait(source.first_seconds, interval_seconds)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def poll(self) -> None:
        """Begin to ask, when the first question is due."""
        due = min(source.due for source in self._sources.while_running)
        if self._thread is None and due <= time.monotonic() and not self._stopping.is_set():
            thread = threading.Thread(target=self._run, name="spark-lineage-status", daemon=True)
            # The host may give no more threads now, and one later.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        """Stop within a second; an answer that comes after that is not taken any more."""
        if not self._stopping.is_set():
            self._stopping.set()
            if self._thread is not None:
                self._thread.join(_STOP_SECONDS)

    def finish(self, deadline: Deadline | float) -> None:
        """Stop, and ask each source for its last word, as far as the time allows."""
        self.stop()
        if not self._sources.at_the_end:
            return
        is_over = threading.Event()

        def query() -> None:
            for source in self._sources.at_the_end:
                self._query(source, is_over)
            for numbers in () if self._numbers else self._sources.numbers():
                self.report(numbers)

        # A thread, because no limit of an HTTP client holds for all that a resolver or a proxy may do.
        BoundedRun(query, "spark-lineage-status").wait(deadline)
        is_over.set()

    def report(self, report: Report) -> None:
        """Take what a source reports; what it, or another, has reported already changes nothing."""
        with self._lock:
            if isinstance(report, TaskNumbers):
                # A log that is read again, by the next try, begins anew.
                self._numbers[report.key] = max(
                    self._numbers.get(report.key, report), report, key=lambda one: one.tasks
                )
                return
            kept = len(self._ledger.transitions)
            transition = self._ledger.add(report)
            if transition is None:
                return
            if len(self._ledger.transitions) > kept:
                self._unwritten.append(transition)
            self._on_transition(transition)

    def submitted(self, driver_id: str, source: str = SUBMIT) -> None:
        """Note which driver was submitted: a process of this machine, or what its cluster calls it."""
        self.driver_id = driver_id
        self.note("SUBMITTED", source)
        self.flush(BRIEF_SECONDS)

    def reattached(self, driver_id: str, try_number: int) -> None:
        """Take over the driver of an earlier try, with what that try knew."""
        self.resume(driver_id, LINEAGE_FILES.use(lambda: list(read_transitions(self._directory))))
        self.note("REATTACHED", AIRFLOW, f"by try {try_number}")

    def resume(self, driver_id: str, transitions: Iterable[StatusTransition]) -> None:
        """Go on with a driver, of which these transitions are known; they are not passed on."""
        self.driver_id = driver_id
        with self._lock:
            for one in transitions:
                self._ledger.add(report_of(one))

    def kill_asked(self, why: str) -> None:
        """Note that the task is to be killed, in case that this process is."""
        self.note("KILLING", AIRFLOW, why)
        self.flush(BRIEF_SECONDS)

    def note(self, status: Status, source: str, detail: str = "", error: str = "", application_id: str = "") -> None:
        """Note what happened to the driver, or to an application of it; nothing before there is a driver."""
        if not self.driver_id:
            return
        thing: tuple[Subject, str] = ("APPLICATION", application_id) if application_id else ("DRIVER", self.driver_id)
        self.report(StatusReport(*thing, status, datetime.now(UTC), source, detail=detail, exception=error))

    def ended(
        self, status: Status | None, source: str, applications: Iterable[str], detail: str = "", error: str = ""
    ) -> None:
        """Note how the driver ended, and with it its applications, whose end no source has reported.

        :param status: of the driver; None where its cluster has said so itself
        :param applications: the ids of applications that may not be in the timeline
        """
        if status is not None:
            self.note(status, source, detail, error)
        end = self.status("DRIVER", self.driver_id)
        if end is None or end not in ENDED:
            return
        for application_id in sorted(self.applications(applications)):
            if self.status("APPLICATION", application_id) not in ENDED:
                self.note(end, source, "the driver has ended", application_id=application_id)

    def write(self) -> None:
        """Write down what is new, however long that takes: a report itself does not wait for a disk."""
        with self._writing:
            with self._lock:
                transitions, self._unwritten = self._unwritten, []
            lines = b"".join(json.encode(one) + b"\n" for one in storable_transitions(transitions))
            try:
                if lines and self._directory.is_dir():
                    append_private(self._directory / TRANSITIONS_FILE, [lines])
            except OSError as error:
                log.debug("A transition is not on disk: %s", error)

    def flush(self, deadline: Deadline | float) -> None:
        """Write down what is new, as long as there is time: the disk may hang."""
        if self._unwritten or self._writing.locked():
            BoundedRun(self.write, "spark-lineage-files").wait(deadline)

    def status(self, subject: Subject, subject_id: str) -> Status | None:
        """Return the present status of an application or a driver."""
        return self._ledger.status(subject, subject_id)

    @property
    def driver_status(self) -> Status | None:
        """The driver's status by its cluster manager; None in client mode, where there is none."""
        return None if self.is_client else self.status("DRIVER", self.driver_id)

    @property
    def driver_error(self) -> str:
        """Why the driver failed, or where it was lost, in the cluster manager's words; in client mode who killed it."""
        statuses = {"KILLED"} if self.is_client else {*ENDED, "UNKNOWN", "REATTACHED"}
        subject: Subject = "APPLICATION" if self.is_client else "DRIVER"
        ends = [one for one in self.transitions(subject) if one.new_status in statuses]
        # An earlier try may have lost a driver that went on.
        last = [one for one in ends[-1:] if one.new_status != "REATTACHED"]
        return " ".join(part for one in last for part in (one.exception or one.detail, f"({one.source})") if part)

    def has_uncaught_failure(self) -> bool:
        """Whether something failed in an application, after which nothing of it succeeded any more."""
        with self._lock:
            return self._ledger.has_uncaught_failure()

    def summary(self, error: str = "", application_id: str | None = None, ui_url: str | None = None) -> StatusSummary:
        """Return what is known, and where to read on."""
        with self._lock:
            numbers = tuple(self._numbers[key] for key in sorted(self._numbers))
            known = StatusSummary(tuple(self._ledger.transitions), self._ledger.summed(), error, numbers=numbers)
        linked = self._sources.linked(known, application_id)
        return structs.replace(linked, ui_url=ui_url or linked.ui_url)

    def transitions(self, subject: Subject) -> list[StatusTransition]:
        """Return the transitions of all applications, or of all drivers."""
        with self._lock:
            return [one for one in self._ledger.transitions if one.subject == subject]

    def applications(self, others: Iterable[str]) -> set[str]:
        """Return the ids of the applications in the timeline, and of others."""
        return {*others, *(one.subject_id for one in self.transitions("APPLICATION"))}

    def _run(self) -> None:
        sources = self._sources.while_running
        while not self._stopping.is_set():
            for source in sources:
                if source.due <= time.monotonic() and not self._stopping.is_set():
                    has_answered = self._query(source, self._stopping)
                    source.asked(self._interval_seconds, has_answered=has_answered)
            now, progress = time.monotonic(), self._sources.ui.progress
            if now >= self._log_next and progress != self._logged:
                self._logger.info("Spark: %s", progress)
                self._logged, self._log_next = progress, now + _PROGRESS_SECONDS
            self._stopping.wait(max(_LEAST_SECONDS, min(source.due for source in sources) - time.monotonic()))

    def _query(self, source: Dialect, is_over: threading.Event) -> bool:
        """Take the reports of a source, and return whether it has answered; no error stops the other sources."""
        has_answered = False
        try:
            reports = converse(source.poll(), self._sources.client.send)
            has_answered = True
            for report in () if is_over.is_set() else reports:
                self.report(report)
        except NoAnswerError as error:
            log.debug("No answer from the %s: %s", source.name, error)
        except Exception as error:
            log_trouble(log, f"A status that the {source.name} reports is not passed on", error)
        return has_answered
