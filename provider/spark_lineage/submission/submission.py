"""One piece of Spark work seen from outside: what its driver leaves, which status it has, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.launch.bounded_run import ANSWER_SECONDS, Deadline
from spark_lineage.launch.log import Log
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.transition import ENDED, StatusReport, StatusSummary, StatusTransition
from spark_lineage.submission.collector import DirectoryCollector, FollowedEventLogs
from spark_lineage.submission.event_channel import EventChannel
from spark_lineage.submission.history_log import HistoryLogs
from spark_lineage.submission.log_mirror import LogMirror
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_monitor import StatusMonitor

if TYPE_CHECKING:
    from spark_lineage.launch.driver import Driver, DriverEnd
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings
    from spark_lineage.watch.endpoints import Endpoints

LISTENER = "OpenLineage listener"
# The least time between two requests to a driver's UI whose event log is read: only the progress is news.
_UI_SECONDS = 20.0
_LARGEST_EXIT_CODE = 128

log = Log(__name__)


class Submission:
    """The inbox, the status and the end of one launch.

    A running task, one that goes on with the driver of an earlier try, and the recovery of a lost try use it. They
    differ in who calls ``poll``, and in how long ``finish`` may take. ``poll`` and ``finish`` are for one thread.

    :param endpoints: of the launch, as ``endpoints_of`` returns them
    :param driver: what is known of the driver, which others learn more of meanwhile
    :param on_transition: called with each transition of status, in their order, by the thread that brings it
    :param has_event_log: whether the event log is going to report the SparkJobs, so that the driver is asked late
    :param is_live: whether this is the task itself: its own event log goes when it was read
    """

    def __init__(
        self,
        launch: Launch,
        endpoints: Endpoints,
        settings: Settings,
        driver: Driver,
        guard: Guard,
        *,
        on_transition: Callable[[StatusTransition], object] = lambda _: None,
        has_event_log: bool = False,
        is_live: bool = True,
    ) -> None:
        self.driver = driver
        self.collector = DirectoryCollector(Path(launch.directory), guard.log)
        self.collector.source = launch.events_from or "directory"
        self.sources = Sources(endpoints, driver)
        self.monitor = StatusMonitor(
            self.sources,
            self.collector.directory,
            interval_seconds=settings.poll_interval_seconds,
            has_event_log=has_event_log,
            on_transition=on_transition,
            logger=guard.log,
        )
        self.channel = EventChannel(launch, self.sources, guard)
        self.mirror = LogMirror(
            launch,
            settings.event_log_from,
            self.collector,
            driver=driver,
            history=HistoryLogs(endpoints) if endpoints.history_server_url else None,
            webhdfs_urls=endpoints.webhdfs_urls,
            logger=guard.log,
        )
        self.event_logs = FollowedEventLogs(
            self.collector,
            self.monitor.report,
            launch,
            is_removing=is_live,
            copies=self.mirror.names,
            pull=self.mirror.poll,
        )
        self._guard = guard
        self._service = launch.service
        self._is_live = is_live
        # The places that the driver prints are not read where the user has named another source.
        self._reads_printed = settings.evidence != "listener" and settings.event_log_from not in {
            "event_log",
            "history",
        }

    def go_on_from(self, earlier: Submission) -> None:
        """Add to what was collected of an earlier submission, which was read to its end."""
        ours, its = self.collector, earlier.collector
        ours.state, ours.counts, ours.log_counts = its.state, its.counts, its.log_counts
        self.event_logs.found_for |= earlier.event_logs.found_for

    def poll(self) -> None:
        """Pull and fold what is new, and ask for the status when that is due; trouble with files is left to the end."""
        self.channel.poll()
        try:
            self.collector.poll()
        except OSError as error:
            log.debug("Lineage files cannot be read yet: %s", error)
        self._observe()
        self.monitor.write()
        self.mirror.poll()
        self.event_logs.poll()
        self.sources.ui.least_seconds = _UI_SECONDS if self.event_logs.is_followed else 0.0

    def _observe(self) -> None:
        state, driver = self.collector.state, self.driver
        # The latest of several applications counts.
        for one in (*state.applications.values(), *(each.application for each in state.logged.values())):
            driver.application_id = one.application_id or driver.application_id
            driver.ui_url = one.ui_url or driver.ui_url
        for report in begun_applications(state):
            self.monitor.report(report)
        # The status is asked before the logs are read, which may be long.
        self.monitor.poll()
        if self._reads_printed:
            self.event_logs.look_into(self.driver.event_logs, self.driver.logged_ids)

    def finish(self, until: Deadline) -> None:
        """Pull and fold the rest to the last line, and wait for what comes late as long as each source is worth it.

        :raises OSError: when a lineage file is there and cannot be read; the rest has been read then
        """
        try:
            self.channel.finish(self.collector, until)
            self.collector.finish()
        finally:
            self._observe()
            self.event_logs.poll()
            with self._guard("Some lineage may be missing, because an event log is not copied", can_fail=False):
                if self._may_have_begun:
                    # A recovery does not wait for a log that is missing in a directory of this machine.
                    is_missing = self._is_live and self.event_logs.is_missing
                    self.mirror.finish(until, is_missing=is_missing, is_killed=self._was_killed)
            self.event_logs.finish(self._guard, is_kept=self.driver.runs_on)

    @property
    def _may_have_begun(self) -> bool:
        """Whether a driver may have run; false where the submission failed."""
        driver = self.driver
        if not self._is_live or driver.application_id or driver.driver_id:
            return True
        return driver.is_submitted and (self.monitor.is_client or not driver.exit_code)

    @property
    def _was_killed(self) -> bool:
        """Whether the driver was killed, or never ran, as its cluster or the exit code of ``spark-submit`` shows it."""
        if self.monitor.is_client:
            # A shell reports a signal as 128 and its number.
            return self.driver.exit_code is not None and not 0 <= self.driver.exit_code <= _LARGEST_EXIT_CODE
        has_run = any(one.new_status in {"RUNNING", "FINISHED"} for one in self.monitor.transitions("DRIVER"))
        status = self.monitor.driver_status
        return status == "KILLED" or (status == "FAILED" and not has_run)

    @property
    def is_asking(self) -> bool:
        """Whether a remote source is being asked, which may hang."""
        return self.channel.is_asking or self.mirror.is_asking

    @property
    def application_ids(self) -> set[str]:
        """The applications that the events or the driver's log name."""
        ids = self.collector.application_ids
        return ids | {self.driver.application_id} if self.driver.application_id else ids

    def query_end(self, until: Deadline, service_end: Callable[[], DriverEnd | None]) -> None:
        """Ask the cluster for the end of the driver.

        :param service_end: returns that of the service which runs the driver, if one does
        """
        with self._guard("The timeline may lack its end", can_fail=False):
            self.monitor.finish(until.within(ANSWER_SECONDS))
            if self._service and self.monitor.driver_status not in ENDED and (end := service_end()) is not None:
                if end.application_id and self.application_ids and end.application_id not in self.application_ids:
                    end = replace(end, status="UNKNOWN", detail=f"its id is that of {end.application_id} by now")
                self.monitor.note(end.status, end.source, end.detail)

    def summary(self, error: str) -> StatusSummary:
        """Return what is known of the status, and where to read on."""
        return self.monitor.summary(error, max(self.application_ids, default=None), self.driver.ui_url)


def begun_applications(state: LineageState) -> Iterator[StatusReport]:
    """Report the applications whose START has come; their end is not used, because it is always COMPLETE.

    Contexts of one program may share a run, which has the time of the first of them.
    """
    first: set[str] = set()
    for run_id, application_id in sorted(state.applications):
        run = state.runs.get(run_id)
        if application_id and run is not None:
            time = datetime.now(UTC) if run_id in first else utc(run.first)
            first.add(run_id)
            yield StatusReport("APPLICATION", application_id, "RUNNING", time, LISTENER)
