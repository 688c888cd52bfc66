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
from spark_lineage.watch.rest import NoAnswerError
from spark_lineage.watch.status_log import StatusLog, read_transitions
from spark_lineage.watch.watcher import Watcher

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
        self._progress = _ProgressLog(sources, logger)
        if not has_event_log:
            sources.ask_the_ui_soon()
        self._watcher = Watcher(
            sources.while_running, self.log.tell, interval_seconds=interval_seconds, after_poll=self._progress.tell
        )

    def start(self) -> None:
        """Begin to ask the sources."""
        self._watcher.start()

    def tell(self, reports: Iterable[StatusReport]) -> None:
        """Take what is known from elsewhere."""
        for report in reports:
            self.log.tell(report)

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

    def stop(self) -> None:
        """Stop watching, within a second."""
        self._watcher.stop()

    def ask_at_the_end(self, deadline: Deadline) -> None:
        """Stop watching, and ask each source for its last word, as far as the time allows."""
        self._watcher.stop()
        is_over = threading.Event()
        # A thread, because no limit of an HTTP client holds for all that a server, a resolver or a proxy may do.
        BoundedRun(lambda: self._ask(is_over), "spark-lineage-last-word").wait(deadline)
        is_over.set()

    def _ask(self, is_over: threading.Event) -> None:
        for source in self._sources.at_the_end:
            try:
                for report in source.poll():
                    if is_over.is_set():
                        return
                    self.log.tell(report)
            except NoAnswerError as error:
                self._logger.debug("No last word from the %s: %s", source.name, error)
            except Exception as error:
                # What a source answers is beyond us; the others are still asked.
                self._logger.warning("Trouble with what the %s says: %s", source.name, type(error).__name__)

    def ended(self, status: Status, exit_code: int | None, error: str, applications: Iterable[str]) -> None:
        """Learn how the task ended: in client mode, that is how the driver did.

        In cluster mode the driver's end is the cluster manager's to tell; where it has not, we only lose sight of it.
        What its applications have not told of their end, they have when the driver has ended.

        :param exit_code: of spark-submit in client mode
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
        if end is None or end not in ENDED:
            return
        source = _SUBMIT if self._is_client else _AIRFLOW
        self.end_applications(end, source, "the driver has ended", self.applications(applications))

    def applications(self, others: Iterable[str]) -> list[str]:
        """Return the ids of all applications that were told of, and of others, sorted."""
        transitions = self.log.summary().transitions
        return sorted({*others, *(one.subject_id for one in transitions if one.subject == "APPLICATION")})

    def end_applications(self, status: Status, source: str, detail: str, applications: Iterable[str]) -> None:
        """Tell the end of those whose end nobody has told."""
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
        told = [one for one in self.log.summary().transitions if one.subject == "DRIVER" and one.new_status in ENDED]
        return " ".join(part for one in told[-1:] for part in (one.exception or one.detail, f"({one.source})") if part)

    def summary(self, error: str, application_id: str | None, ui_url: str | None = None) -> StatusSummary:
        """Return what is known, and where to read on.

        :param ui_url: the address that the driver itself gives of its UI, by which others find it
        """
        links = self._sources.links(application_id)
        return structs.replace(
            self.log.summary(),
            error=error,
            ui_url=ui_url or links.ui_url,
            history_url=links.history_url,
            logs_url=links.logs_url,
        )

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


class _ProgressLog:
    """Logs how far the jobs of the application are, when that has changed, and at most every ten seconds."""

    def __init__(self, sources: Sources, logger: Log) -> None:
        self._sources = sources
        self._logger = logger
        self._told = ""
        self._next = time.monotonic() + _PROGRESS_SECONDS

    def tell(self) -> None:
        now = time.monotonic()
        progress = self._sources.progress
        if now < self._next or progress is None:
            return
        text = str(progress)
        if text != self._told:
            self._logger.info("Spark: %s", text)
            self._told, self._next = text, now + _PROGRESS_SECONDS
