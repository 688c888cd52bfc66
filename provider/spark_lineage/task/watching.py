"""The watching side of a session: what is learnt of a job that runs, its timeline, and the listeners that are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.collect.collector import Collector
from spark_lineage.launch.bounded_run import counting_down
from spark_lineage.launch.log import Log
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.transition import ENDED, StatusReport, StatusSummary, StatusTransition
from spark_lineage.notify.task_notifications import TaskNotifications
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.source import Known
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.task_watch import TaskWatch

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.guard import Guard
    from spark_lineage.launch.launch import Launch
    from spark_lineage.merge.lineage import TaskLineage, TaskState
    from spark_lineage.settings.task import TaskSettings
    from spark_lineage.submit.hook import Submission

SOURCE = "OpenLineage listener"
_FLUSH_SECONDS = 1.0


class Watching:
    """Of one task: from the submission of its job, or from when it was taken over, to the end of the task.

    Whatever goes wrong is logged, and costs the timeline or the listeners no more than what it was about.
    """

    def __init__(self, context: Context, task: TaskSettings, *, guard: Guard, logger: Log) -> None:
        self.watch: TaskWatch | None = None
        self._context = context
        self._task = task
        self._known = Known()
        self._notifications: TaskNotifications | None = None
        self._guard = guard
        self._log = logger

    def notify(self, configuration: Mapping[str, str], declared: TaskLineage | None) -> None:
        """Tell the listeners of the job.

        :param configuration: the Spark properties of the job, as they are
        :param declared: the task's inlets and outlets, None where it has none
        """
        with self._guard("No listener is told of the job", can_fail=False):
            self._notifications = TaskNotifications(
                self._context,
                self._task.settings,
                configuration=configuration,
                options=self._task.options,
                declared=declared,
                logger=self._log,
            )

    def begin(self, launch: Launch, *, has_event_log: bool) -> None:
        """Watch a launch; without that, its event lacks the timeline."""
        task = self._task
        self._known.driver_id = launch.external_id
        with self._guard("The application is not watched", can_fail=False):
            watch = TaskWatch(
                Sources(endpoints_of(launch, task.extra, task.login, task.password, self._guard), self._known),
                Path(launch.directory),
                deploy_mode=launch.deploy_mode,
                interval_seconds=task.settings.poll_interval_seconds,
                has_event_log=has_event_log,
                on_transition=self._on_transition,
                logger=self._log,
            )
            watch.start()
            self.watch = watch

    def take_over(self, launch: Launch) -> None:
        """Watch the launch of an earlier try, which has the number of this one by now."""
        self.begin(launch, has_event_log=False)
        if self.watch is not None:
            with self._guard("The timeline begins with this try", can_fail=False):
                self.watch.reattached(launch.external_id or "", launch.try_number)

    def submitted(self, driver_id: str) -> None:
        """Learn which driver was submitted."""
        self._tell(lambda watch: watch.submitted(driver_id), "The timeline is without the submission")

    def kill_asked(self, why: str) -> None:
        """Learn that the task is being killed."""
        self._tell(lambda watch: watch.kill_asked(why), "The timeline is without the kill")

    def learn_driver(self, external_id: str) -> None:
        """Tell the sources by which id the driver is found."""
        self._known.driver_id = external_id

    def learn(self, submission: Submission) -> None:
        """Tell the sources what the log and the events have told so far."""
        self._known.application_id = submission.application_id
        self._known.ui_url = submission.ui_address or submission.ui_url

    def observe(self, collector: Collector) -> None:
        """Tell the timeline what the events have told so far."""
        if self.watch is not None:
            for report in begun_applications(collector.state):
                self.watch.log.tell(report)

    @property
    def has_seen_the_end(self) -> bool:
        """Whether the cluster manager has told how the driver ended; in client mode its exit code tells that."""
        return self.watch is not None and self.watch.driver_status in ENDED

    @property
    def tell(self) -> Callable[[StatusReport], object] | None:
        """Who takes what is found of status, None where nobody does."""
        return self.watch.log.tell if self.watch is not None else None

    @property
    def summary(self) -> StatusSummary | None:
        """What is known now."""
        return self.watch.log.summary() if self.watch is not None else None

    def ended(self, lineage: TaskLineage, end: TaskState, failure: BaseException | None) -> None:
        """Tell the listeners the lineage and the end of the task.

        :param end: as the event of the task says it
        """
        if self._notifications is not None:
            with self._guard("The listeners are not told the lineage", can_fail=False):
                self._notifications.ended(lineage, end, str(failure or ""))

    def close(self, end: TaskState, failure: BaseException | None, seconds: Callable[[float], float]) -> None:
        """Stop watching, and wait for the listeners; those that have not been told the end are told it.

        :param seconds: gives how much of some seconds there is
        """
        if self.watch is not None:
            self.watch.stop()
            self.watch.log.flush(counting_down(seconds(_FLUSH_SECONDS)))
        if self._notifications is not None:
            with self._guard("Listeners may have missed events", can_fail=False):
                at_most = seconds(self._task.settings.listener_timeout_seconds)
                self._notifications.close(end, str(failure or ""), at_most)

    def _tell(self, tell: Callable[[TaskWatch], object], consequence: str) -> None:
        if self.watch is not None:
            with self._guard(consequence, can_fail=False):
                tell(self.watch)

    def _on_transition(self, transition: StatusTransition) -> None:
        self._log.debug("%s %s: %s", transition.subject, transition.subject_id, transition.new_status)
        if self._notifications is not None:
            self._notifications.changed(transition)


def begun_applications(state: LineageState) -> Iterator[StatusReport]:
    """The applications whose START has come; their end is not to be had here, because it says COMPLETE always."""
    for run_id, application in state.applications.items():
        run = state.runs.get(run_id)
        if application.application_id is not None and run is not None:
            yield StatusReport("APPLICATION", application.application_id, "RUNNING", utc(run.first), SOURCE)
