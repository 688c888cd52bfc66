"""One task in the order in which it happens: read the methods of ``LineageSession`` from the top.

The settings are settled, the operator's hook is attached, and before the job is submitted its launch is made, lineage
is injected, and watching begins. When the job is over, its lineage is read, merged and sent, once, in ``_finish``.

Errors of lineage are logged with their cause and never fail the task, unless ``lineage_required`` is set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from spark_lineage.inject.task_injection import TaskInjection, inject_task
from spark_lineage.launch.bounded_run import (
    AFTER_KILLING_SECONDS,
    AFTER_READING_SECONDS,
    ANSWER_SECONDS,
    BRIEF_SECONDS,
    BoundedRun,
    Kill,
)
from spark_lineage.launch.launch import Launch, with_application
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard, LineageRequiredError, Log, log_lineage, log_status, nothing_came, unmet
from spark_lineage.launch.retention import remove_if_empty
from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.outcome import reported_end, task_state
from spark_lineage.merge.task import task_lineage
from spark_lineage.secrets.redaction import explain_error, redact_error
from spark_lineage.settings.places import TaskSettings
from spark_lineage.submit.hook import HookAdapter, Submission
from spark_lineage.task.collecting import Collecting, add_inlets_and_outlets, declared_lineage, why_log_stays
from spark_lineage.task.launching import LaunchHandle, NewLaunch, new_launch, submitted_with
from spark_lineage.task.receiving import NOTHING_RETURNS, Receiving, nothing_returns
from spark_lineage.task.task_events import TaskEvents
from spark_lineage.task.watching import Watching
from spark_lineage.watch.endpoints import unknown_seconds

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.collect.collector import DirectoryCollector

DEFERRED = "TaskDeferred"
# After that the process of the task is not killed: there is as much time as is needed.
_TIMEOUT = "AirflowTaskTimeout"
_begun = partial(BoundedRun, name="spark-lineage-kill")


class LineageSession:
    """One execution of a task.

    Opened around the provider's ``execute``; ``attach`` takes the hook when the operator makes it. What was collected
    is in ``operator_lineage`` after the end, for the OpenLineage provider to ask for.
    """

    is_resumed = False
    """Whether the operator has deferred itself before: then it may have submitted its job, and sent its lineage."""

    def __init__(self, task: TaskSettings, *, external_id_key: str, context: Context, logger: Log) -> None:
        self._task = task
        self._context = context
        self._log = logger
        self._guard = Guard(self._task.is_required, logger)
        self._adapter: HookAdapter | None = None
        self._new: NewLaunch | None = None
        self._injection: TaskInjection | None = None
        self._handle = LaunchHandle(context, external_id_key, self._guard)
        self._collecting: Collecting | None = None
        self._watching = Watching(context, self._task, self._guard)
        self._receiving = Receiving(self._task, self._watching.driver_log, self._guard)
        self._kill = Kill.of_process = Kill()
        self._killing: BoundedRun | None = None
        self._has_succeeded = False
        self._events: TaskEvents | None = None
        self._started = datetime.now(UTC)

    def __enter__(self) -> Self:
        """Settle the settings."""
        with self._guard("The job runs without lineage"):
            self._task.settle()
            if self._task.settings.lineage_enabled:
                self._events = TaskEvents(self._context, self._kill, self._task.settings, self._guard)
        return self

    def attach(self, operator: Any, hook: SparkSubmitHook) -> SparkSubmitHook:
        """Wrap the operator's hook."""
        with self._guard("The Spark provider alone follows the driver", can_fail=False):
            self._handle.track(operator, hook, self._task.places)
        with self._guard("The job runs without lineage"):
            if self._task.settings.lineage_enabled:
                self._adapter = HookAdapter(
                    hook,
                    before_submit=self._before_submit,
                    is_killed=lambda: self._kill.is_asked,
                    on_started=self._on_started,
                    on_learnt=self._learn,
                    on_external_id=self._remember_external_id,
                    has_finished=lambda: self._watching.has_finished,
                    on_line=self._watching.links.push,
                    unknown_seconds=unknown_seconds(self._task.places.extra),
                )
        return hook

    def _before_submit(self) -> None:
        adapter = self._adapter
        if adapter is None:
            return
        with self._guard("The job runs without lineage"):
            new = new_launch(self._context, self._task.settings, self._task.conn_id, adapter)
            self._new = new = self._receiving.begin(new)
            self._handle.launch = new.launch
            try:
                with self._guard("The job runs without lineage"):
                    self._inject(adapter, new)
            finally:
                injection = self._injection
                configuration = new.properties if injection is None else injection.prepared.conf
                self._watching.notify(configuration, self._declared)
            log = injection.event_log if injection is not None else None
            launch = self._handle.launch = structs.replace(new.launch, event_logs=log.places if log else ())
            self._watching.begin(launch, has_event_log=injection is not None and injection.has_event_log)
            collecting = self._follow(adapter, launch)
            if injection is not None:
                collecting.log_where(injection.evidence)
            self._handle.keep()
        self._begin()

    def _inject(self, adapter: HookAdapter, new: NewLaunch) -> None:
        injection = inject_task(
            new.lineage,
            self._task.settings,
            adapter.arguments,
            adapter.submitter,
            why_not_home=why_log_stays(new.launch, self._task),
            guard=self._guard,
        )
        adapter.take(injection.prepared)
        self._injection = injection
        if nothing_returns(new.launch, self._task.settings, has_event_log=injection.has_event_log):
            log = injection.event_log
            self._log.warning(NOTHING_RETURNS, log.reason if log is not None else "evidence=listener")

    def _follow(self, adapter: HookAdapter, launch: Launch) -> Collecting:
        self._collecting = collecting = Collecting(
            launch,
            self._task,
            adapter.submission,
            self._watching,
            self._go_on,
            receiving=self._receiving,
            guard=self._guard,
        )
        return collecting

    def _begin(self) -> None:
        # Once the launch is kept: its end will be sent even if this process is lost.
        if self._events is not None:
            self._events.begin(self._declared)

    def _go_on(self, lineage: TaskLineage, counts: LineCounts) -> None:
        if self._events is not None:
            self._events.go_on(lineage, counts)

    def _on_started(self, process_id: int) -> None:
        launch = self._handle.keep(process_id=process_id)
        if launch is not None and launch.deploy_mode == "client":
            self._watching.submitted(f"{launch.host}:{process_id}")

    def _learn(self) -> None:
        self._watching.learn(self._submission)

    def _remember_external_id(self, external_id: str) -> None:
        self._learn()
        if self._handle.keep(external_id=external_id) is not None:
            self._watching.submitted(external_id)

    def polling(self) -> None:
        """Note that the provider waits for a remote driver: its own, or that of an earlier try."""
        with self._guard("The driver of the earlier try is not watched", can_fail=False):
            if self._adapter is not None and not self._adapter.submission.is_started:
                self._reattach()

    def _reattach(self) -> bool:
        """Take over the job of an earlier try, with the lineage that it has written."""
        launch = self._handle.take_over(self._task.settings.lineage_conn_id)
        if launch is None or self._adapter is None:
            return False
        # What the job was submitted with is nowhere stored, but for what the operator says of it.
        self._adapter.remember_secrets()
        self._watching.notify(submitted_with(self._adapter)[0], self._declared)
        self._watching.take_over(launch)
        self._receiving.attach(launch, submitted_with(self._adapter)[0])
        self._follow(self._adapter, launch).log_where("the job of an earlier try")
        self._handle.keep()
        self._begin()
        return True

    def kill(self, why: str, kill_job: Callable[[], object]) -> None:
        """Kill the job and leave no process behind: the lineage ends as ABORT, whatever Spark says afterwards (M4).

        A driver that has ended by itself cannot be killed any more; then there is only less time for its lineage.

        :param kill_job: of the provider, called once; it may wait for a command, for a server, or for what the user
            wants done afterwards, and goes on while the event of the task is made, unless the task has all the time
        """
        is_timeout = why == _TIMEOUT
        self._kill.ask(why, is_too_late=self._has_driver_ended, is_hurried=not is_timeout)
        if not self._task.settings.lineage_enabled:
            kill_job()
            return
        # No line is logged here, and no file written: what the signal has interrupted may hold the lock of that.
        deadline = self._kill.deadline
        if self._killing is None:
            self._killing = _begun(kill_job)
            if self._kill.is_asked:
                _begun(lambda: self._watching.kill_asked(why)).wait(deadline.within(BRIEF_SECONDS))
        try:
            # Without a time limit, as long as the stock operator.
            self._killing.wait(deadline.within(math.inf, leaving=AFTER_KILLING_SECONDS))
        finally:
            if self._adapter is not None:
                remaining = deadline.within(ANSWER_SECONDS, leaving=AFTER_READING_SECONDS)
                _begun(self._adapter.end_processes).wait(remaining)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Finish the task; what was collected is kept for the OpenLineage provider."""
        # An operator that defers itself goes on in another session, which may be the one that submits.
        is_deferred = kind is not None and kind.__name__ == DEFERRED
        if (is_deferred or (self.is_resumed and error is None)) and not self._submission.is_started:
            return
        error = None if is_deferred else error
        self._has_succeeded = error is None
        if error is not None and not isinstance(error, Exception):
            why = type(error).__name__
            self._kill.ask(why, is_hurried=why != _TIMEOUT)
        try:
            self._finish(error)
        except BaseException as late:
            # The time of the task was over while we collected; the job had succeeded within it.
            if error is not None or type(late).__name__ != _TIMEOUT:
                raise
            self._log.warning("The execution timeout came when the job had succeeded; lineage may be missing.")

    def _finish(self, error: BaseException | None) -> None:
        """Read, merge and report; after any error the end of the task is still sent and everything is closed."""
        failure = error
        try:
            with self._guard("The task's event carries no lineage", can_fail=error is None):
                if (collecting := self._collecting or self._found()) is not None:
                    self._tell(collecting, self._merged(collecting, error), error)
        except LineageRequiredError as lacking:
            failure = lacking
            raise
        finally:
            if error is not None:
                with self._guard("The text of the task's error may hold secrets", can_fail=False):
                    redact_error(error)
            state = task_state(is_killed=self._kill.is_asked, is_succeeded=failure is None)
            if self._events is not None:
                with self._guard("The end of the task is not sent", can_fail=False):
                    self._begin()
                    self._events.end(TaskLineage(state), None, failure, self._handle.directory)
                self._events.deliver()
            self._tidy(state, failure)

    def _merged(self, collecting: Collecting, error: BaseException | None) -> TaskLineage:
        """Read to the last line, ask the cluster how it ended, and merge."""
        collector, settings = collecting.collector, self._task.settings
        with self._guard("Some lineage is missing, because a file cannot be read", can_fail=error is None):
            if not collecting.read_all(self._kill) and not self._kill.why:
                collector.counts.add("not read in time")
                raise TimeoutError("not all was read in time (collect_timeout_seconds), or the lineage directory hangs")
        add_inlets_and_outlets(collector.state, self._context, self._started, self._guard)
        state, status = self._watching.conclude(
            self._submission, self._kill, collector.application_ids, error, is_client=self._handle.is_client
        )
        if isinstance(error, Exception) and status is not None:
            explain_error(error, status.error)
        lineage = task_lineage(
            collector.state, state, naming=self._task.naming, has_actions=settings.granularity != "task"
        )
        if self._is_injected:
            lineage = with_application(lineage, self._handle.launch, self._submission.application_id)
        return structs.replace(lineage, status=status)

    def _tell(self, collecting: Collecting, lineage: TaskLineage, error: BaseException | None) -> None:
        """Give the lineage to the backends, the listeners and the log.

        :raises LineageRequiredError: when the task asked for more lineage than there is; its event says so, too
        """
        collector = collecting.collector
        is_lacking = not (collector.counts.read or collector.state.logged) and self._is_injected and collecting.is_whole
        lacking = LineageRequiredError(self._nothing_came(collector)) if is_lacking else None
        failure = error or unmet(lineage, lacking, required=self._task.settings.lineage_required)
        if self._events is not None:
            self._events.end(lineage, collector.counts, failure, self._handle.directory, str(lacking or ""))
        self._watching.ended(lineage, reported_end(lineage.state, failure), failure)
        if lineage.status is not None:
            log_status(lineage.status, self._log)
        if not self._is_injected and not collector.state.logged:
            self._log.warning("The driver wrote no lineage: it ran without the listener, as is logged above.")
        elif lacking is None:
            has_listener = self._injection is not None and self._injection.prepared.has_listener
            log_lineage(lineage, collector.counts, self._log, self._handle.launch if has_listener else None)
        elif failure is error:
            self._log.warning(str(lacking))
        if failure is not None and failure is not error:
            raise failure

    def _nothing_came(self, collector: DirectoryCollector) -> str:
        has_listener = self._injection is None or self._injection.prepared.has_listener
        return nothing_came(collector.directory, collector.counts, self._handle.launch, has_listener=has_listener)

    def _found(self) -> Collecting | None:
        """Return the lineage of a job that had ended before this try came."""
        if self._adapter is not None and not self._submission.is_started and not self._reattach():
            text = "Re-attached to a job that was submitted without lineage, or by another operator."
            if self._task.settings.lineage_required:
                raise LineageRequiredError(text)
            self._log.warning(text)
        return self._collecting

    def _tidy(self, state: TaskState, failure: BaseException | None) -> None:
        deadline = self._kill.deadline
        self._watching.close(state, failure, deadline)
        if self._killing is not None:
            # With this process, its container may end, and the command that kills the job with it.
            with self._guard("The job may not have been killed", can_fail=False):
                if not self._killing.wait(deadline.within(math.inf, leaving=AFTER_READING_SECONDS)):
                    self._log.warning("The job is still being killed; its task does not wait for that.")
        with self._guard("Old lineage files are not removed", can_fail=False):
            if self._injection is not None:
                self._injection.tidy()
            if self._new is not None:
                # A driver that wrote nothing leaves nothing; one that is still to come makes its directory itself.
                remove_if_empty(Path(self._new.launch.directory))

    @property
    def operator_lineage(self) -> OperatorLineage[Any, Any] | None:
        """What was collected, after the end; for the OpenLineage provider to ask for."""
        return self._events.operator_lineage if self._events is not None else None

    @property
    def links(self) -> dict[str, str]:
        """The URLs of the task's links, by XCom key."""
        return self._watching.links.urls

    @property
    def is_on(self) -> bool:
        """Whether the session has anything to do with the task's job; else the operator is the stock one."""
        return self._adapter is not None

    @property
    def is_killed(self) -> bool:
        """Whether the task is being killed, and its driver had not ended before."""
        return self._kill.is_asked

    @property
    def _has_driver_ended(self) -> bool:
        if self._has_succeeded:
            return True
        if not self._handle.is_client:
            return self._watching.has_seen_the_end
        return self._adapter is not None and self._adapter.has_driver_ended

    @property
    def _declared(self) -> TaskLineage | None:
        return declared_lineage(self._context, self._started, self._guard)

    @property
    def _is_injected(self) -> bool:
        """Whether the driver has to write lineage; else the log says why not."""
        return self._new is None or self._injection is not None

    @property
    def _submission(self) -> Submission:
        return self._adapter.submission if self._adapter is not None else Submission()
