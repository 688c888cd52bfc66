"""One execution of a task, from its settings to its end: ``Prepared``, then ``Running``, then ``Ended``.

Errors of lineage are logged with their cause and never fail the task, unless ``lineage_required`` is set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from spark_lineage.adapters.adapter import AdaptedTask, attach
from spark_lineage.launch.bounded_run import (
    AFTER_KILLING_SECONDS,
    AFTER_READING_SECONDS,
    ANSWER_SECONDS,
    BRIEF_SECONDS,
    TIMEOUT,
    BoundedRun,
    Kill,
    cut_off_by,
)
from spark_lineage.launch.launch import Launch, storable, storable_transitions
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard, LineageRequiredError
from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.secrets.redaction import redact_error
from spark_lineage.settings.places import TaskSettings
from spark_lineage.task.ended import Ended
from spark_lineage.task.links import TaskLinks
from spark_lineage.task.prepared import Prepared
from spark_lineage.task.running import Running
from spark_lineage.task.task_events import TaskEvents

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

DEFERRED = "TaskDeferred"
_SKIPPED = "AirflowSkipException"
_begun = partial(BoundedRun, name="spark-lineage-kill")


class LineageSession:
    """One execution of a task, opened around the provider's ``execute``; ``attach`` takes the hook that it makes.

    After the end, ``operator_lineage`` has the collected lineage; the OpenLineage provider asks for it.

    :param task: the settled settings
    :param external_id_key: by which the provider of the operator stores the id of the job
    :param is_resumed: whether the operator has deferred itself before: then it may have submitted its job, and sent its
        lineage
    """

    def __init__(
        self, task: TaskSettings, *, external_id_key: str, context: Context, guard: Guard, is_resumed: bool = False
    ) -> None:
        self._task = task
        self._context = context
        self._guard = guard
        self._external_id_key = external_id_key
        self._is_resumed = is_resumed
        self._kill = Kill.of_process = Kill()
        self._killing: BoundedRun | None = None
        self._has_succeeded = self._is_attached = False
        self._links = TaskLinks(context.get("ti"), guard, context.get("task_state_store"))
        self._events = TaskEvents(context, self._kill, task.settings, guard, self._links)
        self._started = datetime.now(UTC)
        self._prepared: Prepared | None = None
        self._running: Running | None = None
        self._defers = self._has_looked = False
        self._kept_lacking = ""
        # The start of the first process, if the task was deferred.
        self._began = self._started.timestamp()

    @classmethod
    def opened(cls, task: TaskSettings, logger: Any, **arguments: Any) -> LineageSession | None:
        """Settle the settings of a task; return None where it runs without lineage.

        :param arguments: of the class
        :raises LineageRequiredError: where the settings cannot be used, and the task asked to fail then
        """
        guard = Guard(task.is_required, logger)
        with guard("The job runs without lineage"):
            task.settle()
            if task.settings.lineage_enabled:
                return cls(task, guard=guard, **arguments)
        return None

    @staticmethod
    def absent(logger: Any, why: str) -> None:
        """Log that a task has no lineage, because nothing can be added to its driver."""
        Guard(lambda: False, logger).log.info("The task has no lineage: %s", why)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def attach(self, operator: Any, hook: Any) -> Any:
        """Wrap the operator's hook."""
        self._is_attached = True
        with self._guard("The job runs without lineage"):
            adapted = AdaptedTask(
                before_submit=self._submit,
                is_killed=lambda: self._kill.is_asked,
                places=self._task.places,
                store=self._context.get("task_state_store"),
                external_id_key=self._external_id_key,
                guard=self._guard,
            )
            adapter = attach(operator, hook, adapted)
            if not adapter.takes_listener:
                self._task.settings = replace(self._task.settings, evidence="event_log")
            self._prepared = Prepared(
                self._context,
                self._task,
                adapter,
                self._events,
                self._links,
                self._kill,
                self._guard,
                self._external_id_key,
                self._started,
            )
        return hook

    def _submit(self) -> Running | None:
        with self._guard("The job runs without lineage"):
            if self._prepared is not None:
                # A subclass may submit several jobs.
                earlier = self._running if self._running is not None and self._running.is_new else None
                self._running = self._prepared.submit(earlier)
        self._begin()
        return self._running

    def _begin(self) -> None:
        # START follows the launch on disk: from then on, the end is sent even if this process is lost.
        self._events.begin(self._prepared.declared if self._prepared is not None else None, self._lacking)

    @property
    def _lacking(self) -> LineCounts | None:
        """The reason, as it is counted, why the job has no source of lineage; None where it has one."""
        if self._running is not None:
            return None if self._running.is_injected else self._running.submission.collector.counts
        return None if self._prepared is None else LineCounts.of(self._kept_lacking or self._prepared.lacking())

    def polling(self) -> None:
        """Note that the provider waits for a remote driver: its own, or that of an earlier try."""
        with self._guard("The driver of the earlier try is not watched", can_fail=False):
            self._reattach()

    def _reattach(self) -> None:
        """Take over the job of an earlier try, where this one has submitted none."""
        if self._prepared is None or self._prepared.adapter.driver.is_submitted or self._running is not None:
            return
        self._running = self._prepared.adapter.observer = self._prepared.reattach()
        if self._running is not None:
            self._begin()

    def handover(self, launch: Launch) -> dict[str, Any]:
        """Return what the process needs, as JSON, that resumes a task which is deferred.

        :param launch: what the operator knows of its driver
        """
        self.polling()
        self._defers = True
        transitions: list[Any] = []
        if self._running is not None:
            ours = self._running.launch
            transitions = storable_transitions(self._running.submission.monitor.summary().transitions)
            yarn_urls = ours.yarn_urls or launch.yarn_urls
            launch = structs.replace(ours, external_id=launch.external_id, yarn_urls=yarn_urls)
        known = {"began": self._began, "has_looked": self._has_looked, "links": self._links.urls}
        if self._running is None and self._prepared is not None:
            known["lacking"] = self._prepared.lacking()
        return {"launch": storable(launch), "transitions": transitions, **known}

    def handover_of_service(self) -> dict[str, Any] | None:
        """Return the same of a job that a service runs, None of any other, and of one that is not submitted yet."""
        adapter = self._prepared.adapter if self._prepared is not None else None
        if adapter is None or not adapter.is_service or adapter.driver.driver_id is None:
            return None
        master, driver_id = adapter.submitter.master, adapter.driver.driver_id
        conn_id = self._task.conn_id
        launch = Launch("", "", external_id=driver_id, conn_id=conn_id, master=master, deploy_mode="cluster")
        return self.handover(launch)

    def resume(self, handover: Mapping[str, Any], seen: Sequence[Any]) -> None:
        """Resume the job of a deferred task; ``seen`` are the transitions that the trigger has seen, as JSON."""
        self._links.urls |= handover.get("links", {})
        self._began = handover.get("began", self._began)
        with self._guard("The lineage of the job is not collected"):
            if self._prepared is not None and "lacking" in handover:
                # Nothing was added to the job: it has no directory, and its START is still to be sent.
                self._kept_lacking = handover["lacking"]
                self._prepared.adapter.driver.is_submitted = True
            elif self._prepared is not None:
                self._running = self._prepared.adapter.observer = self._prepared.resume(handover, seen)
                self._events.resume()

    def send_running(self) -> None:
        """Send a RUNNING event of what the job has done so far, where it is known of any dataset."""
        with self._guard("The lineage so far is not sent", can_fail=False):
            self._has_looked = True
            if self._running is not None:
                self._running.send_running()

    def kill(self, why: str, kill_job: Callable[[], object]) -> None:
        """Kill the job and leave no process behind: the lineage ends as ABORT, whatever Spark says afterwards (M4).

        A driver that has ended by itself cannot be killed any more; then there is only less time for its lineage.

        :param kill_job: of the provider, called once; it may wait for a command, for a server, or for what the user
            wants done afterwards, and goes on while the event of the task is made, unless the task has all the time
        """
        running, deadline = self._running, self._kill.deadline
        self._kill.request(why, is_too_late=self._has_driver_ended, is_hurried=why != TIMEOUT)
        # The handler logs no line and writes no file: the interrupted code may hold their locks.
        if self._killing is None:
            self._killing = _begun(kill_job)
            if self._kill.is_asked and running is not None:
                _begun(lambda: running.submission.monitor.kill_asked(why)).wait(deadline.within(BRIEF_SECONDS))
        try:
            # The wait has no limit after an execution timeout, as in the stock operator.
            self._killing.wait(deadline.within(math.inf, leaving=AFTER_KILLING_SECONDS))
        finally:
            if self._prepared is not None:
                remaining = deadline.within(ANSWER_SECONDS, leaving=AFTER_READING_SECONDS)
                _begun(self._prepared.adapter.kill).wait(remaining)

    def kill_after(self, error: BaseException, kill_job: Callable[[], object]) -> None:
        """Kill the job that an error has cut off: it would write after its lineage was collected."""
        if why := cut_off_by(error):
            self.kill(why, kill_job)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Finish the task, unless it goes on in another process."""
        is_deferred = kind is not None and kind.__name__ == DEFERRED
        adapter = self._prepared.adapter if self._prepared is not None else None
        is_submitted = adapter is not None and adapter.driver.is_submitted
        if is_deferred and self._defers:
            if self._running is not None:
                self._running.suspend()
            self._events.deliver()
            return
        # An operator that defers itself goes on in another session, which may be the one that submits. A service's job
        # that was submitted before is known, unless Airflow has lost what was kept of it.
        is_over = self._is_resumed and error is None and not (adapter is not None and adapter.is_service)
        if (is_deferred or is_over) and not is_submitted:
            return
        # The OpenLineage provider sends COMPLETE of a task that skips itself.
        error = None if kind is not None and kind.__name__ in (DEFERRED, _SKIPPED) else error
        self._has_succeeded = error is None
        if error is not None and (why := cut_off_by(error)):
            self._kill.request(why, is_hurried=why != TIMEOUT)
        try:
            self._finish(error)
        except BaseException as late:
            # The time of the task was over while we collected; the job had succeeded within it.
            if error is not None or type(late).__name__ != TIMEOUT:
                raise
            self._guard.log.warning("The execution timeout came when the job had succeeded; lineage may be missing.")

    def _finish(self, error: BaseException | None) -> None:
        """Read, merge and report; after any error the end of the task is still sent and everything is closed."""
        failure = error
        try:
            with self._guard("The task's event carries no lineage", can_fail=error is None):
                running = self._find_job()
                if running is not None and error is None and running.launch.parent:
                    running.leave()
                elif running is not None:
                    Ended.of(running, error).report(self._events)
        except LineageRequiredError as lacking:
            failure = lacking
            raise
        finally:
            if error is not None:
                with self._guard("The text of the task's error may hold secrets", can_fail=False):
                    redact_error(error)
            state = conclude(EndFacts(self._kill.is_asked, is_succeeded=failure is None))
            with self._guard("The end of the task is not sent", can_fail=False):
                self._begin()
                directory = Path(self._running.launch.directory) if self._running is not None else None
                self._events.end(TaskLineage(state), self._lacking, failure, directory)
            self._events.deliver()
            if self._running is not None:
                self._running.close(state, failure)
            if self._killing is not None:
                # The container may end with this process, and so the command that kills the job.
                with self._guard("The job may not have been killed", can_fail=False):
                    if not self._killing.wait(self._kill.deadline.within(math.inf, leaving=AFTER_READING_SECONDS)):
                        self._guard.log.warning("The job is still being killed; its task does not wait for that.")

    def _find_job(self) -> Running | None:
        """Return the job of this execution, or one that had ended before this try came."""
        if not self._is_attached:
            self._guard.log.info("The task has no lineage: it has run nothing by the hook of its operator.")
        if self._prepared is not None and not self._prepared.adapter.driver.is_submitted:
            self._reattach()
            if self._running is None:
                text = "The task has no lineage: it submitted no job, or re-attached to one without lineage."
                if self._task.settings.lineage_required:
                    raise LineageRequiredError(text)
                self._guard.log.warning(text)
        return self._running

    @property
    def operator_lineage(self) -> OperatorLineage[Any, Any] | None:
        """The collected lineage, after the end; the OpenLineage provider asks the operator for it."""
        return self._events.operator_lineage

    @property
    def next_look(self) -> float | None:
        """When the next RUNNING event of a deferred task is due, in epoch seconds; None where none is sent."""
        return time.time() + self._task.settings.tracking_interval_seconds if self._prepared is not None else None

    @property
    def _has_driver_ended(self) -> bool:
        if self._running is not None:
            return self._has_succeeded or self._running.has_driver_ended()
        # A job without lineage has an adapter at most.
        return self._has_succeeded or (self._prepared is not None and self._prepared.adapter.has_driver_ended)

    @property
    def is_killed(self) -> bool:
        """Whether the task is being killed, and its driver had not ended before."""
        return self._kill.is_asked
