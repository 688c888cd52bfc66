"""Follows what the driver of a launch writes, reads the rest at its end, and adds what the DAG declares."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.collect.bringing import Bringing, why_not_home
from spark_lineage.collect.collector import DirectoryCollector, FollowedEventLogs
from spark_lineage.collect.declared import declared_events, declared_span
from spark_lineage.collect.history_log import HistoryLogs
from spark_lineage.launch.bounded_run import (
    AFTER_READING_SECONDS,
    ANSWER_SECONDS,
    LINEAGE_FILES,
    BoundedRun,
    Deadline,
    Kill,
)
from spark_lineage.launch.directory import LAUNCH_FILE, root_of
from spark_lineage.launch.launch import application_ids
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard, log_trouble
from spark_lineage.launch.retention import clean_up
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.task.receiving import Receiving
from spark_lineage.task.tracking import Tracking
from spark_lineage.watch.endpoints import endpoints_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.launch import Launch
    from spark_lineage.settings.places import TaskSettings
    from spark_lineage.submit.hook import Submission
    from spark_lineage.task.watching import Watching

# For what is there to be read at once, however late it is; and for a line that is just being folded.
_AT_LEAST_SECONDS, _LINE_SECONDS = 0.5, 0.3

log = logging.getLogger(__name__)


class Follower:
    """Has a collector polled every ``interval_seconds`` until it is ended, then has the rest read, in a thread.

    All callbacks are called there: no other thread uses what was collected meanwhile.

    :param between: called before the first poll and after each; trouble is left to the end
    :param before_end: called before the rest is read; trouble is left to the end
    :param at_end: called when the last line was read
    """

    def __init__(
        self,
        collector: DirectoryCollector,
        interval_seconds: float,
        *,
        between: Callable[[], object] = lambda: None,
        before_end: Callable[[], object] = lambda: None,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self.is_ending = threading.Event()
        self.has_looked = threading.Event()
        self._collector = collector
        self._interval_seconds = interval_seconds
        self._between = between
        self._before_end = before_end
        self._at_end = at_end
        self._run: BoundedRun | None = None

    def start(self) -> BoundedRun:
        """Begin to follow, and return what ends when all is read."""
        self._run = self._run or BoundedRun(self._follow, "spark-lineage-files")
        return self._run

    def end(self) -> BoundedRun:
        """Have the rest read; return what to wait for, which raises an ``OSError`` where a file cannot be read."""
        self.is_ending.set()
        return self.start()

    def _follow(self) -> None:
        self._try(self._between)
        while not self.is_ending.wait(self._interval_seconds):
            self._try(self._collector.poll)
            self._try(self._between)
            self.has_looked.set()
        if self._collector.is_closed:
            return
        self._try(self._before_end)
        try:
            self._collector.finish()
        finally:
            self._at_end()

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except OSError as error:
            log.debug("Lineage files cannot be read yet: %s", error)
        except Exception as error:
            log_trouble(log, "The lineage so far is not reported", error)


class Collecting:
    """Follow the lineage files of one launch. Starts on construction; ``collector`` has the results so far.

    :param submission: learns about the application from the events, and ``watching`` after it
    :param send: called with the lineage so far when it is time for a RUNNING event
    :param receiving: of the launch
    """

    def __init__(
        self,
        launch: Launch,
        task: TaskSettings,
        submission: Submission,
        watching: Watching,
        send: Callable[[TaskLineage, LineCounts], None],
        *,
        receiving: Receiving,
        guard: Guard,
    ) -> None:
        directory = Path(launch.directory)
        self.collector = DirectoryCollector(directory, guard.log)
        self.collector.source = launch.events_from or "directory"
        self.is_whole = True
        self._submission = submission
        self._watching = watching
        self._guard = guard
        self._receiving = receiving
        # The watching of the task says what does not fit.
        endpoints = endpoints_of(launch, task.places, None)
        self._bringing = Bringing(
            launch,
            task.settings.collect_log,
            self.collector,
            application_ids=lambda: {
                *application_ids(launch.application_id, launch.external_id),
                *application_ids(submission.application_id, submission.external_id),
                *submission.logged_ids,
            },
            history=HistoryLogs(endpoints) if endpoints.history_server_url else None,
            webhdfs_urls=endpoints.webhdfs_urls,
            logger=guard.log,
        )
        self._where = "; ".join(filter(None, (launch.directory, receiving.words, self._bringing.words())))
        # At the end, for what lies elsewhere.
        self._until = Deadline()
        self._event_logs = FollowedEventLogs(self.collector, watching.tell, launch, copies=self._bringing.names)
        self._tracking = Tracking(
            task.settings.tracking_interval_seconds,
            naming=task.naming,
            send=send,
            status=lambda: watching.summary,
            guard=guard,
        )
        self._directory = directory
        self._settings = task.settings
        self._is_cleaning_up = True
        self._follower = Follower(
            self.collector,
            task.settings.poll_interval_seconds,
            between=self._between,
            before_end=lambda: self._receiving.finish(self.collector, self._until),
            at_end=self._at_end,
        )
        self._follower.start()

    def read_all(self, kill: Kill) -> bool:
        """Read to the last line, as long as the setting and a kill allow, and return whether there was time for that.

        Nothing more is collected afterwards.

        :raises OSError: when a lineage file is there and cannot be read; the rest has been read then
        """
        try:
            self.is_whole = is_whole = self._read(kill.deadline)
        finally:
            if not self._tracking.stop(kill.deadline.within(ANSWER_SECONDS).seconds_left):
                self._guard.log.warning(
                    "The backend has not taken a RUNNING event yet: it may come after the last one."
                )
        if missing := self._event_logs.missing:
            text = (
                "No event log was found of %s: the program has turned it off, or writes one of its own on another "
                "file system. Some lineage may be missing."
            )
            self._guard.log.debug(text, ", ".join(sorted(missing)))
        if not is_whole and kill.why:
            text = "Some lineage may be missing: the task is being killed, and there was no time to read all."
            self._guard.log.warning(text)
        return is_whole

    def log_where(self, evidence: str) -> None:
        """Log what the lineage comes from, and where it is collected."""
        self._guard.log.info("Lineage comes from %s, collected in %s", evidence, self._where)

    def look(self) -> None:
        """Wait until what is there was read; a RUNNING event of it is on its way then."""
        self._tracking.repeat()
        self._follower.has_looked.wait(self._settings.collect_timeout_seconds)

    def abandon(self) -> None:
        """Collect nothing more: another process goes on with all that the driver writes."""
        self.collector.close()
        self._follower.is_ending.set()
        self._tracking.stop(ANSWER_SECONDS)

    def _read(self, deadline: Deadline) -> bool:
        def until(seconds: float) -> Deadline:
            return deadline.within(seconds, leaving=AFTER_READING_SECONDS, at_least=_AT_LEAST_SECONDS)

        seconds = self._settings.collect_timeout_seconds
        everything, answer = until(seconds), until(min(seconds, LINEAGE_FILES.seconds_left))
        self._until = everything
        reading = self._follower.end()
        # What is slow has all the time, and what hangs has not.
        probe = BoundedRun(self._directory.exists, "spark-lineage-files")
        try:
            is_whole = probe.wait(answer) and reading.wait(everything)
        finally:
            # Also where the task's own time is over.
            self.collector.close()
        # It may be in the middle of a line; or its file hangs, and so may all others there.
        if (
            not is_whole
            and not reading.wait(_LINE_SECONDS)
            and not (self._bringing.is_asking or self._receiving.is_asking)
        ):
            LINEAGE_FILES.hangs(reading)
        return is_whole

    def _between(self) -> None:
        self._receiving.poll()
        self._watching.observe(self.collector.state, self._submission)
        self._watching.write()
        self._look()
        self._bringing.poll()
        self._event_logs.poll()
        self._watching.ask_ui(is_logged=self._event_logs.is_followed)
        self._tracking.tell(self.collector, is_logged=self._event_logs.is_followed)
        # The rest of the old files is for after the next poll, or for the next job.
        is_cleaning_up, self._is_cleaning_up = self._is_cleaning_up, False
        with self._guard("Old lineage files are not removed", can_fail=False):
            if is_cleaning_up:
                # Where others clean up: of a job that is waited for, nothing may have changed for days.
                with suppress(FileNotFoundError):
                    os.utime(self._directory / LAUNCH_FILE)
                time = Deadline(self._settings.poll_interval_seconds)
                clean_up(
                    root_of(self._directory),
                    self._settings.retention_days,
                    keep=self._directory,
                    is_over=lambda: self._follower.is_ending.is_set() or not time.seconds_left,
                )
                # Not again where all was gone through, or that failed.
                self._is_cleaning_up = not time.seconds_left

    def _look(self) -> None:
        # What the user wants to be collected elsewhere is not read here.
        if self._settings.evidence != "listener" and self._settings.collect not in {"event_log", "history"}:
            self._event_logs.look_into(self._submission.event_logs, self._submission.logged_ids)

    def _at_end(self) -> None:
        self._watching.observe(self.collector.state, self._submission)
        self._look()
        self._event_logs.poll()
        with self._guard("Some lineage may be missing, because an event log is not copied", can_fail=False):
            if self._watching.has_begun(self._submission):
                is_killed = self._watching.was_killed(self._submission)
                self._bringing.finish(self._until, is_missing=self._event_logs.is_missing, is_killed=is_killed)
        self._event_logs.finish(self._guard)


def why_log_stays(launch: Launch, task: TaskSettings) -> Callable[[str], str]:
    """Return a function that says why an event log in the directory of a URL cannot be copied; empty if it can."""
    endpoints = endpoints_of(launch, task.places, None)
    return lambda url: why_not_home(
        url, task.settings.collect_log, endpoints.webhdfs_urls, has_history=bool(endpoints.history_server_url)
    )


def declared_lineage(context: Context, started: datetime, guard: Guard) -> TaskLineage | None:
    """Return the lineage that the DAG declares, which is all that is known at first; None for nothing."""
    state = LineageState()
    add_inlets_and_outlets(state, context, started, guard)
    return task_lineage(state, "RUNNING") if state.runs else None


def add_inlets_and_outlets(state: LineageState, context: Context, started: datetime, guard: Guard) -> None:
    """Add what the DAG declares of the task."""
    inlets, outlets = context.get("inlets") or [], context.get("outlets") or []
    if not (inlets or outlets):
        return
    with guard("Inlets and outlets are missing in the lineage", can_fail=False):
        from airflow.providers.openlineage import conf
        from airflow.providers.openlineage.plugins.macros import lineage_job_name
        from openlineage.client.uuid import generate_new_uuid

        started, ended = declared_span(state, started, datetime.now(UTC))
        events = declared_events(
            inlets,
            outlets,
            run_id=str(generate_new_uuid()),
            job_namespace=conf.namespace(),
            job_name=f"{lineage_job_name(context['ti'])}.declared",
            started=started,
            ended=ended,
        )
        for event in events:
            state.add(*event)
