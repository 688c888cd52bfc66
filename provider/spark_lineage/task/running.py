"""A task whose job was submitted, by this try or by an earlier one: it is followed until its lineage is merged."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from spark_lineage import add_ons
from spark_lineage.launch.bounded_run import (
    AFTER_READING_SECONDS,
    ANSWER_SECONDS,
    BRIEF_SECONDS,
    LINEAGE_FILES,
    BoundedRun,
    Deadline,
)
from spark_lineage.launch.directory import LAUNCH_FILE, root_of
from spark_lineage.launch.launch import Launch, store_launch
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Log, error_text, log_trouble
from spark_lineage.launch.retention import clean_up, remove_submitted
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.transition import ENDED, StatusSummary, StatusTransition
from spark_lineage.submission.log_mirror import server_log_directory
from spark_lineage.submission.submission import Submission
from spark_lineage.task.links import DRIVER_LOG, HISTORY, MANAGER, UI, show_pages
from spark_lineage.task.tracking import Tracking
from spark_lineage.watch.status_monitor import AIRFLOW, SUBMIT

if TYPE_CHECKING:
    from spark_lineage.inject.task_injection import TaskInjection
    from spark_lineage.merge.lineage import TaskState
    from spark_lineage.task.prepared import Prepared
    from spark_lineage.watch.endpoints import Endpoints

# The least time to read files that are on disk already, and to finish the line in progress.
_AT_LEAST_SECONDS, _LINE_SECONDS = 0.5, 0.3

log = Log(__name__)


class Running:
    """A task and its ``submission``, which one thread follows from ``follow`` on; ``launch`` is kept on disk.

    :param configuration: the Spark properties of the job, as they are, for listeners
    :param injection: what was injected into the job; None where that failed, or an earlier try did it
    :param is_new: whether this try submits the job
    """

    _following: BoundedRun

    def __init__(
        self,
        prepared: Prepared,
        launch: Launch,
        endpoints: Endpoints,
        configuration: Mapping[str, str],
        *,
        injection: TaskInjection | None = None,
        is_new: bool = False,
    ) -> None:
        task, self.guard = prepared.task, prepared.guard
        self.launch = launch
        self.injection = injection
        self.has_listener = injection.prepared.has_listener if injection is not None else not is_new
        self.is_injected = injection is not None or not is_new
        """Whether the driver has to write lineage; else the log says why not."""
        self.is_new = is_new
        self.prepared = prepared
        self._settings = task.settings
        self.notifications = notifications_of(prepared, configuration)
        prepared.adapter.driver.driver_id = prepared.adapter.driver.driver_id or launch.external_id
        self.submission = Submission(
            launch,
            endpoints,
            task.settings,
            prepared.adapter.driver,
            self.guard,
            on_transition=self._on_transition,
            has_event_log=injection is not None and injection.has_event_log,
        )
        self._links = prepared.links
        if task.settings.lineage_url:
            with self.guard("The task has no link to its job", can_fail=False):
                is_indexed = task.settings.map_index_in_job_name
                ti = prepared.context["ti"]
                show_pages(self._links, task.settings.lineage_url, ti, is_map_index_in_name=is_indexed)
                self._links.push()
        self._tracking = Tracking(
            task.settings.tracking_interval_seconds,
            naming=task.naming,
            send=prepared.events.go_on,
            status=self.submission.monitor.summary,
            guard=self.guard,
        )
        # The deadline of ``submission.finish``.
        self._until = Deadline()
        self._is_ending, self._has_looked = threading.Event(), threading.Event()
        self._is_cleaning_up = True

    def _on_transition(self, transition: StatusTransition) -> None:
        self.guard.log.debug("%s %s: %s", transition.subject, transition.subject_id, transition.new_status)
        if self.notifications is not None:
            self.notifications.changed(transition)

    def follow(self, evidence: str, route: str = "") -> None:
        """Begin to follow the submission, and log where its lineage comes from.

        :param evidence: the sources of the lineage; nothing is logged where it is empty
        :param route: where the driver sends its events, empty for the lineage directory
        """
        if evidence:
            where = filter(None, (self.launch.directory, route, self.submission.mirror.described()))
            self.guard.log.info("Lineage comes from %s, collected in %s", evidence, "; ".join(where))
        self._following = BoundedRun(self._follow, "spark-lineage-files")

    def _follow(self) -> None:
        submission = self.submission
        self._clean_up()
        while not self._is_ending.wait(self._settings.poll_interval_seconds):
            try:
                submission.poll()
                self.driver_changed()
                self._tracking.report(submission.collector, is_logged=submission.event_logs.is_followed)
                self._clean_up()
            except Exception as error:
                log_trouble(log, "The lineage so far is not reported", error)
            self._has_looked.set()
        if not submission.collector.is_closed:
            submission.finish(self._until)

    def _clean_up(self) -> None:
        """Remove old lineage files, as many as fit in one poll interval; the next poll or the next job goes on."""
        is_cleaning_up, self._is_cleaning_up = self._is_cleaning_up, False
        if not is_cleaning_up:
            return
        with self.guard("Old lineage files are not removed", can_fail=False):
            directory = Path(self.launch.directory)
            # Another task's clean-up goes by this time: a job that waits may have changed no file for days.
            with suppress(FileNotFoundError):
                os.utime(directory / LAUNCH_FILE)
            time = Deadline(self._settings.poll_interval_seconds)
            clean_up(
                root_of(directory),
                self._settings.retention_days,
                keep=directory,
                is_over=lambda: self._is_ending.is_set() or not time.seconds_left,
            )
            # The clean-up goes on only if its time was over, and not after an error.
            self._is_cleaning_up = not time.seconds_left

    def keep(self, **changes: Any) -> None:
        """Change the launch, and keep it for a later process."""
        self.launch = structs.replace(self.launch, **changes)
        with self.guard("A retry will not find the lineage of this job", can_fail=False):
            store_launch(self.prepared.context.get("task_state_store"), self.launch)

    # The adapter calls these in the task's own thread (``adapters.adapter.Observer``).

    def started(self, process_id: int) -> None:
        """Learn that the process of the job runs on this machine.

        :raises OSError: where the server of its session has no event log that can be read from here
        """
        driver, known = self.submission.driver, dict[str, Any]()
        if self.launch.session_id and driver.event_logs:
            known = self._find_server_log()
        self.keep(process_id=process_id, **known)
        if self.launch.deploy_mode == "client":
            self.submission.monitor.submitted(f"{self.launch.host}:{process_id}")

    def _find_server_log(self) -> dict[str, Any]:
        driver, mirror, log = self.submission.driver, self.submission.mirror, self.guard.log
        (given,), driver.event_logs = driver.event_logs, ()
        if not mirror.webhdfs_urls and given.startswith("hdfs:"):
            from spark_lineage.settings.hadoop import name_nodes

            mirror.webhdfs_urls = name_nodes(self.prepared.adapter.submitter.env, given)
        place = server_log_directory(given, self._settings.event_log_from, mirror.webhdfs_urls)
        driver.event_logs = (place,)
        log.info("Lineage comes from the event log of the Spark Connect server, in %s", place)
        urls = tuple(mirror.webhdfs_urls)
        return {"application_id": driver.application_id, "event_logs": (place,), "webhdfs_urls": urls}

    def submitted(self, external_id: str) -> None:
        """Learn the id by which the provider finds the running job again."""
        self.driver_changed()
        self.keep(external_id=external_id)
        self.submission.monitor.submitted(external_id, AIRFLOW if self.launch.service else SUBMIT)

    def driver_changed(self, *, is_over: bool = False) -> None:
        """Show the links that are known by now; any thread may call this."""
        pages = self.submission.sources.linked(StatusSummary(), self.submission.driver.application_id)
        self._links.show(UI, "" if is_over else pages.ui_url)
        self._links.show(HISTORY, pages.history_url if is_over else None)
        self._links.show(MANAGER, pages.manager_url)
        self._links.show(DRIVER_LOG, pages.logs_url)

    def waiting(self) -> None:
        """Push the links that are new."""
        self._links.push()

    @property
    def has_finished(self) -> bool:
        """Whether the cluster manager says that the driver has succeeded."""
        return self.submission.monitor.driver_status == "FINISHED"

    # A task that a trigger waits for.

    def send_running(self) -> None:
        """Wait until the files on disk are read and a RUNNING event of them is on its way."""
        self._tracking.repeat()
        self._has_looked.wait(self._settings.lineage_timeout)

    def leave(self) -> None:
        """Stop following a job that its task does not wait for: it is a job of its own, whose end a server sends.

        Nothing follows the end of a task, which comes first.
        """
        events, directory = self.prepared.events, Path(self.launch.directory)
        declared = self.prepared.declared or TaskLineage("COMPLETE")
        counts = LineCounts.of(self.prepared.lacking())
        events.end(structs.replace(declared, state="COMPLETE"), counts, None, directory)
        self.keep(child=self.prepared.adapter.child, parts=self.prepared.adapter.parts)
        with self.guard("The job that goes on has no START", can_fail=False):
            names = events.begin_children(self.launch)
            text = "The task does not wait for its driver: the lineage is that of the job %s, when it has ended."
            self.guard.log.info(text, names)
        self.suspend()

    def hand_over(self, following: Submission) -> None:
        """Read all of a job that is followed by another one, which goes on from what was read."""
        with self.guard("The lineage of an earlier job of the task is missing", can_fail=False):
            self.read_all()
            following.go_on_from(self.submission)
        self.suspend()

    def suspend(self) -> None:
        """Stop following a job that goes on: another process does."""
        with self.guard("The threads that watch the job do not end", can_fail=False):
            self.submission.collector.close()
            self._is_ending.set()
            self.submission.monitor.stop()
            self.submission.monitor.flush(BRIEF_SECONDS)
            if self.notifications is not None:
                self.notifications.close(self._settings.brief_seconds)
        self._tidy()

    # The end.

    def has_driver_ended(self) -> bool:
        """Whether the driver has ended by itself; in client mode its process says that."""
        if self.launch.deploy_mode == "client":
            return self.prepared.adapter.has_driver_ended
        return self.submission.monitor.driver_status in ENDED

    def read_all(self) -> bool:
        """Read to the last line, as long as the setting and a kill allow, and return whether there was time for that.

        Nothing more is collected afterwards.

        :raises OSError: when a lineage file is there and cannot be read; the rest has been read then
        """
        kill = self.prepared.kill
        is_whole = False
        try:
            is_whole = self._read(kill.deadline)
        finally:
            if not self._tracking.stop(kill.deadline.within(ANSWER_SECONDS).seconds_left):
                self.guard.log.warning("The backend has not taken a RUNNING event yet: it may come after the last one.")
        if missing := self.submission.event_logs.missing:
            text = (
                "No event log was found of %s: the program has turned it off, or writes one of its own on another "
                "file system. Some lineage may be missing."
            )
            self.guard.log.debug(text, ", ".join(sorted(missing)))
        if not is_whole and kill.why:
            text = "Some lineage may be missing: the task is being killed, and there was no time to read all."
            self.guard.log.warning(text)
        return is_whole

    def _read(self, deadline: Deadline) -> bool:
        def until(seconds: float) -> Deadline:
            return deadline.within(seconds, leaving=AFTER_READING_SECONDS, at_least=_AT_LEAST_SECONDS)

        seconds, collector = self._settings.lineage_timeout, self.submission.collector
        everything, answer = until(seconds), until(min(seconds, LINEAGE_FILES.seconds_left))
        self._until = everything
        self._is_ending.set()
        reading = self._following
        try:
            is_whole = reading.wait(answer.within(BRIEF_SECONDS))
            if not is_whole:
                # A slow reader has all the time; one that hangs has no more.
                probe = BoundedRun(collector.directory.exists, "spark-lineage-files")
                is_whole = probe.wait(answer) and reading.wait(everything)
        finally:
            # The collector closes also after an execution timeout.
            collector.close()
        # The reader may be in the middle of a line; or its file hangs, and with it the whole directory.
        if not is_whole and not reading.wait(_LINE_SECONDS) and not self.submission.is_asking:
            LINEAGE_FILES.hangs(reading)
        return is_whole

    def close(self, state: TaskState, failure: BaseException | None) -> None:
        """Stop watching, and wait for the listeners; those that do not know the end yet get it."""
        deadline, monitor = self.prepared.kill.deadline, self.submission.monitor
        monitor.stop()
        monitor.flush(deadline.within(BRIEF_SECONDS))
        self.driver_changed(is_over=True)
        self._links.push()
        if self.notifications is not None and not self.launch.child:
            with self.guard("Listeners may have missed events", can_fail=False):
                at_most = deadline.within(self._settings.brief_seconds).seconds_left
                self.notifications.ended(state, None, error_text(failure) if failure is not None else "")
                self.notifications.close(at_most)
        self._tidy()

    def _tidy(self) -> None:
        """Remove what only the submission needed; a driver that wrote nothing leaves nothing.

        One that is still to come makes its directory itself.
        """
        if self.is_new and not self.submission.driver.runs_on:
            with self.guard("Files of the submission are not removed", can_fail=False):
                remove_submitted(Path(self.launch.directory))


def notifications_of(prepared: Prepared, configuration: Mapping[str, str]) -> Any:
    """Report the job to the listeners, if the settings name any; return what reports the rest, None for nobody."""
    if not prepared.task.settings.lineage_listeners:
        return None
    with prepared.guard("The listeners get no events of the job", can_fail=False):
        if (listeners := add_ons.part("listeners")) is not None:
            return listeners.Notifications.of_task(
                prepared.context,
                prepared.task,
                configuration,
                prepared.expected,
                prepared.guard.log,
                job_type=prepared.job_type,
            )
    return None
