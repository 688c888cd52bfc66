"""Watches the application of one task: what we know ourselves, what the sources say, and its progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from spark_lineage.launch.bounded_run import LINEAGE_FILES, BoundedRun
from spark_lineage.merge.transition import ENDED, Status, StatusReport, StatusSummary, StatusTransition
from spark_lineage.watch.status_log import StatusLog, read_transitions
from spark_lineage.watch.watcher import Watcher, answer_of

if TYPE_CHECKING:
    from spark_lineage.launch.deadline import Deadline
    from spark_lineage.launch.log import Log
    from spark_lineage.watch.sources import Sources

_AIRFLOW, _SUBMIT = "Airflow", "spark-submit"
_PROGRESS_SECONDS = 10.0


class TaskWatch:
    """The status of one launch, from its submission, or from its re-attachment, to its end.

    :param sources: the REST APIs that fit the master and the deploy mode
    :param has_event_log: whether the event log is going to tell of the SparkJobs, so that the driver need not soon
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
        self._is_client = deploy_mode == "client"
        self._logger = logger
        self._logged = ""
        self._log_next = time.monotonic() + _PROGRESS_SECONDS
        if not has_event_log:
            sources.ui.first_seconds = 1.0
        self._watcher = Watcher(sources.while_running, self._take, interval_seconds=interval_seconds)
        self.start, self.stop = self._watcher.start, self._watcher.stop

    def submitted(self, driver_id: str, detail: str = "") -> None:
        """Learn which driver was submitted: a process of this machine, or what its cluster calls it."""
        self.driver_id = driver_id
        self._tell("SUBMITTED", _SUBMIT, detail)

    def reattached(self, driver_id: str, try_number: int) -> None:
        """Take over the driver of an earlier try, with what that try knew."""
        self.driver_id = driver_id
        kept = LINEAGE_FILES.use(lambda: list(read_transitions(self._directory)))
        self.log.restore(kept)
        self._tell("REATTACHED", _AIRFLOW, f"by try {try_number}")

    def kill_asked(self, why: str) -> None:
        """Learn that the task is to be killed."""
        if self.driver_id:
            self._tell("KILLING", _AIRFLOW, why)

    def ask_at_the_end(self, deadline: Deadline | float) -> None:
        """Stop watching, and ask each source for its last word, as far as the time allows."""
        self.stop()
        is_over = threading.Event()

        def ask() -> None:
            for source in self._sources.at_the_end:
                for report in answer_of(source) or ():
                    if not is_over.is_set():
                        self.log.tell(report)

        # A thread, because no limit of an HTTP client holds for all that a server, a resolver or a proxy may do.
        BoundedRun(ask, "spark-lineage-last-word").wait(deadline)
        is_over.set()

    def ended(self, status: Status, exit_code: int | None, error: str, applications: Iterable[str]) -> None:
        """Learn how the task ended: in client mode, so did the driver (``exit_code``), and with it its applications.

        In cluster mode the driver's end is the cluster manager's to tell; where it has not, we only lose sight of it.
        """
        if not self.driver_id:
            return
        if self._is_client:
            self._tell(status, _SUBMIT, "" if exit_code is None else f"exit code {exit_code}", error)
        elif status == "FINISHED":
            self._tell(status, _AIRFLOW, "the Spark provider saw its end")
        elif status == "FAILED" and self.driver_status not in ENDED:
            self._tell("UNKNOWN", _AIRFLOW, "not watched any more", error)
        end = self.log.status("DRIVER", self.driver_id)
        if end is not None and end in ENDED:
            source = _SUBMIT if self._is_client else _AIRFLOW
            self.end_applications(end, source, "the driver has ended", self.applications(applications))

    def applications(self, others: Iterable[str]) -> list[str]:
        """Return the ids of all applications in the timeline, and of others, sorted."""
        transitions = self.log.summary().transitions
        return sorted({*others, *(one.subject_id for one in transitions if one.subject == "APPLICATION")})

    def end_applications(self, status: Status, source: str, detail: str, applications: Iterable[str]) -> None:
        """Report the end of those whose end no source has reported."""
        for application_id in applications:
            if self.log.status("APPLICATION", application_id) not in ENDED:
                self._tell(status, source, detail, application_id=application_id)

    @property
    def driver_status(self) -> Status | None:
        """What the cluster manager says of the driver; None in client mode, where there is no such word."""
        return None if self._is_client else self.log.status("DRIVER", self.driver_id)

    @property
    def driver_error(self) -> str:
        """Why the driver failed, in the cluster manager's words."""
        ends = [one for one in self.log.summary().transitions if one.subject == "DRIVER" and one.new_status in ENDED]
        return " ".join(part for one in ends[-1:] for part in (one.exception or one.detail, f"({one.source})") if part)

    def summary(self, error: str, application_id: str | None, ui_url: str | None = None) -> StatusSummary:
        """Return what is known, and where to read on.

        :param ui_url: the address that the driver itself gives of its UI, by which others find it
        """
        summary = self._sources.linked(self.log.summary(), application_id)
        return structs.replace(summary, error=error, ui_url=ui_url or summary.ui_url)

    def _tell(
        self, status: Status, source: str, detail: str = "", exception: str = "", application_id: str = ""
    ) -> None:
        self.log.tell(
            StatusReport(
                subject="APPLICATION" if application_id else "DRIVER",
                subject_id=application_id or self.driver_id,
                status=status,
                time=datetime.now(UTC),
                source=source,
                detail=detail,
                exception=exception,
            )
        )

    def _take(self, report: StatusReport) -> None:
        """Take a report, and log how far the jobs are, when that has changed, and at most every ten seconds."""
        self.log.tell(report)
        now, progress = time.monotonic(), self._sources.ui.progress
        if now >= self._log_next and progress != self._logged:
            self._logger.info("Spark: %s", progress)
            self._logged, self._log_next = progress, now + _PROGRESS_SECONDS
