"""The watching side of a session: the status of a running job, its timeline, and its listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage import add_ons
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BRIEF_SECONDS, BoundedRun, Deadline, Kill
from spark_lineage.launch.log import Guard, log_group
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.transition import ENDED, Report, Status, StatusReport, StatusSummary, StatusTransition
from spark_lineage.secrets.redaction import redact
from spark_lineage.submit.driver_output import DriverError, LineRedaction
from spark_lineage.task.links import DRIVER_LOG, HISTORY, JOB, MANAGER, UI, TaskLinks, job_url
from spark_lineage.watch.dialect import LOG_BYTES, LOG_LINES, Known
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_monitor import StatusMonitor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.launch import Launch
    from spark_lineage.merge.lineage import TaskLineage, TaskState
    from spark_lineage.settings.places import TaskSettings
    from spark_lineage.submit.hook import Submission

SOURCE = "OpenLineage listener"
_LARGEST_EXIT_CODE = 128
# Between two answers of a driver's UI of which only the progress is news.
_UI_SECONDS = 20.0
_STATUS_OF: dict[TaskState, Status] = {"COMPLETE": "FINISHED", "FAIL": "FAILED", "ABORT": "KILLED"}


class Watching:
    """Watches one task from the submission or re-attachment of its job to the end of the task.

    Errors are logged, and affect only their part of the timeline or of the listeners' events.
    """

    def __init__(self, context: Context, task: TaskSettings, guard: Guard) -> None:
        self.watch: StatusMonitor | None = None
        self._context = context
        self._task = task
        self.links = TaskLinks(context.get("ti"), guard)
        self._known = Known()
        self._sources: Sources | None = None
        self._notifications: Any = None
        self._guard = guard

    def notify(self, configuration: Mapping[str, str], declared: TaskLineage | None) -> None:
        """Report the job to the listeners, if the settings name any.

        :param configuration: the Spark properties of the job, as they are
        :param declared: the task's inlets and outlets, None where it has none
        """
        settings = self._task.settings
        if not settings.lineage_listeners:
            return
        with self._guard("The listeners get no events of the job", can_fail=False):
            if (listeners := add_ons.part("listeners")) is not None:
                made = listeners.Notifications.of_task(
                    self._context, self._task, configuration, declared, self._guard.log
                )
                self._notifications = made

    def begin(self, launch: Launch, *, has_event_log: bool) -> None:
        """Watch a launch; without that, its event lacks the timeline."""
        task = self._task
        self._known.driver_id = launch.external_id
        with self._guard("The task has no link to its job", can_fail=False):
            is_indexed = task.settings.map_index_in_job_name
            url = job_url(task.settings.lineage_url, self._context["ti"], is_map_index_in_name=is_indexed)
            self.links.show(JOB, url)
            self.links.push()
        with self._guard("The application is not watched", can_fail=False):
            endpoints = endpoints_of(launch, task.places, self._guard)
            self._sources = Sources(endpoints, self._known)
            self.watch = StatusMonitor(
                self._sources,
                Path(launch.directory),
                interval_seconds=task.settings.poll_interval_seconds,
                has_event_log=has_event_log,
                on_transition=self._on_transition,
                logger=self._guard.log,
            )

    def driver_log(self, launch: Launch) -> Sources:
        """Return the log of a driver that runs in a cluster."""
        return Sources(endpoints_of(launch, self._task.places, None), self._known)

    def take_over(self, launch: Launch) -> None:
        """Watch the launch of an earlier try, which has the number of this one by now."""
        self.begin(launch, has_event_log=False)
        if self.watch is not None:
            with self._guard("The timeline begins with this try", can_fail=False):
                self.watch.reattached(launch.external_id or "", launch.try_number)

    def resume(self, launch: Launch, transitions: Iterable[StatusTransition]) -> None:
        """Watch a launch again, of which these transitions are known."""
        self.begin(launch, has_event_log=False)
        if self.watch is not None:
            self.watch.resume(launch.external_id or "", transitions)

    def suspend(self) -> None:
        """Stop watching a job that goes on."""
        if self.watch is not None:
            self.watch.stop()
            self.watch.flush(BRIEF_SECONDS)
        if self._notifications is not None:
            with self._guard("Listeners may have missed events", can_fail=False):
                self._notifications.close(self._task.settings.listener_timeout_seconds)

    def submitted(self, driver_id: str) -> None:
        """Note which driver was submitted."""
        self._tell(lambda watch: watch.submitted(driver_id), "The timeline is without the submission")

    def kill_asked(self, why: str) -> None:
        """Note that the task is being killed."""
        self._tell(lambda watch: watch.kill_asked(why), "The timeline is without the kill")

    def learn(self, submission: Submission) -> None:
        """Pass on to the sources what is known of the submission so far."""
        self._known.driver_id = submission.external_id or self._known.driver_id
        self._known.application_id = submission.application_id
        self._known.ui_url = submission.ui_address or submission.ui_url
        self._show_links()

    def _show_links(self, *, is_over: bool = False) -> None:
        if self._sources is None:
            return
        pages = self._sources.linked(StatusSummary(), self._known.application_id)
        self.links.show(UI, "" if is_over else pages.ui_url)
        self.links.show(HISTORY, pages.history_url if is_over else None)
        self.links.show(MANAGER, pages.manager_url)
        self.links.show(DRIVER_LOG, pages.logs_url)

    def observe(self, state: LineageState, submission: Submission) -> None:
        """Pass on to the sources, and to the timeline, what the events say so far."""
        submission.learn([*state.applications.values(), *(one.application for one in state.logged.values())])
        self.learn(submission)
        for report in begun_applications(state):
            self.tell(report)
        if self.watch is not None:
            self.watch.poll()

    def ask_ui(self, *, is_logged: bool) -> None:
        """Have the driver's UI asked less often where an event log says the same: its answers cost the driver more."""
        if self._sources is not None:
            self._sources.ui.least_seconds = _UI_SECONDS if is_logged else 0.0

    def write(self) -> None:
        """Write down what is new in the timeline, however long that takes."""
        if self.watch is not None:
            self.watch.write()

    def has_begun(self, submission: Submission) -> bool:
        """Whether a driver may have run; false where the submission failed."""
        if self.watch is None or submission.application_id or submission.external_id:
            return True
        return submission.is_started and (self.watch.is_client or not submission.exit_code)

    def was_killed(self, submission: Submission) -> bool:
        """Whether the driver was killed, or never ran, as its cluster or the exit code of ``spark-submit`` shows it."""
        if self.watch is None:
            return False
        if not self.watch.is_client:
            return self.watch.driver_status == "KILLED" or (
                self.watch.driver_status == "FAILED"
                and not any(one.new_status in {"RUNNING", "FINISHED"} for one in self.watch.transitions("DRIVER"))
            )
        # Of a shell, a signal is its number and 128.
        return submission.exit_code is not None and not 0 <= submission.exit_code <= _LARGEST_EXIT_CODE

    @property
    def has_seen_the_end(self) -> bool:
        """Whether the cluster manager knows how the driver ended; in client mode its exit code says that."""
        return self.watch is not None and self.watch.driver_status in ENDED

    @property
    def has_finished(self) -> bool:
        """Whether the cluster manager says that the driver has succeeded."""
        return self.watch is not None and self.watch.driver_status == "FINISHED"

    def tell(self, report: Report) -> None:
        """Take a report of status, from any source."""
        if self.watch is not None:
            self.watch.report(report)

    @property
    def summary(self) -> StatusSummary | None:
        """What is known now."""
        return self.watch.summary() if self.watch is not None else None

    def conclude(
        self,
        submission: Submission,
        kill: Kill,
        applications: set[str],
        failure: BaseException | None,
        *,
        is_client: bool,
    ) -> tuple[TaskState, StatusSummary | None]:
        """Return how the task ended (M4), and its timeline (None: not watched); polls the cluster once more.

        :param applications: the ids that the events name
        :param failure: what ended ``execute``
        """
        watch, exit_code = self.watch, submission.exit_code if is_client else None
        if watch is not None:
            with self._guard("The timeline may lack its end", can_fail=False):
                watch.finish(kill.deadline.within(ANSWER_SECONDS))
        state = task_state(
            is_killed=kill.is_asked,
            driver=watch.driver_status if watch is not None else None,
            exit_code=exit_code,
            is_succeeded=failure is None,
        )
        if watch is None:
            return state, None
        error = "" if state == "COMPLETE" else submission.error.explain(exit_code) if is_client else watch.driver_error
        if state != "COMPLETE" and not error and submission.exit_code:
            # What was not submitted, or whose end spark-submit has waited for.
            error = submission.error.explain(submission.exit_code)
        if state == "FAIL" and not is_client:
            with self._guard("The end of the driver's log is not shown", can_fail=False):
                error = self._shown_log(kill.deadline.within(ANSWER_SECONDS), error)
        if kill.is_asked:
            error = f"killed by Airflow ({kill.why})"
        elif submission.process_id is None and is_client and failure is not None:
            # spark-submit could not be started.
            error = str(failure)
        applications = applications | {submission.application_id} if submission.application_id else applications
        with self._guard("The timeline may lack its end", can_fail=False):
            watch.ended(_STATUS_OF[state], exit_code, error, applications)
            # Before all that is still to be sent: whoever comes after a kill reads it.
            watch.flush(kill.deadline.within(BRIEF_SECONDS))
        return state, watch.summary(error, max(applications, default=None), submission.ui_url)

    def _shown_log(self, deadline: Deadline, how: str) -> str:
        """Log the end of a remote driver's output, and return why it failed, if the output shows it in time."""
        seen, log, texts = DriverError(), self._guard.log, dict[str, str]()
        if (sources := self._sources) is not None:
            BoundedRun(lambda: texts.update(sources.log_tail()), "spark-lineage-log").wait(deadline)
        for name, text in dict(texts).items():
            # Which is cut anywhere.
            lines = text.splitlines()[1 if len(text.encode()) >= LOG_BYTES else 0 :]
            redact_line = LineRedaction()
            for line in lines:
                seen.feed(line)
            log_group(f"The end of the driver's log: {name}", map(redact_line, lines[-LOG_LINES:]), log.info)
        if not texts and (url := self._known.logs_url):
            log.debug("The driver's log: %s", redact(url))
        return seen.explain(None, how or "the driver failed") if texts else how

    def ended(self, lineage: TaskLineage, end: TaskState, failure: BaseException | None) -> None:
        """Report the lineage and the end of the task to the listeners.

        :param end: as the event of the task says it
        """
        if self._notifications is not None:
            with self._guard("The listeners do not get the lineage", can_fail=False):
                self._notifications.ended(end, lineage, str(failure or ""))

    def close(self, end: TaskState, failure: BaseException | None, deadline: Deadline) -> None:
        """Stop watching, and wait for the listeners; those that do not know the end yet get it."""
        if self.watch is not None:
            self.watch.stop()
            self.watch.flush(deadline.within(BRIEF_SECONDS))
        self._show_links(is_over=True)
        self.links.push()
        if self._notifications is not None:
            with self._guard("Listeners may have missed events", can_fail=False):
                at_most = deadline.within(self._task.settings.listener_timeout_seconds).seconds_left
                self._notifications.ended(end, None, str(failure or ""))
                self._notifications.close(at_most)

    def _tell(self, tell: Callable[[StatusMonitor], object], consequence: str) -> None:
        if self.watch is not None:
            with self._guard(consequence, can_fail=False):
                tell(self.watch)
                # In case this process is killed.
                self.watch.flush(BRIEF_SECONDS)

    def _on_transition(self, transition: StatusTransition) -> None:
        self._guard.log.debug("%s %s: %s", transition.subject, transition.subject_id, transition.new_status)
        if self._notifications is not None:
            self._notifications.changed(transition)


def begun_applications(state: LineageState) -> Iterator[StatusReport]:
    """The applications whose START has come; their end is not used, because it is always COMPLETE.

    Contexts of one program may share a run, which has the time of the first of them.
    """
    first: set[str] = set()
    for run_id, application_id in sorted(state.applications):
        run = state.runs.get(run_id)
        if application_id and run is not None:
            time = datetime.now(UTC) if run_id in first else utc(run.first)
            first.add(run_id)
            yield StatusReport("APPLICATION", application_id, "RUNNING", time, SOURCE)
