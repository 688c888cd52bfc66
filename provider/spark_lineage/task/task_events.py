"""Hands over what is known of a task to Airflow's OpenLineage provider and to the task's own connections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from spark_lineage.deliver.through_airflow import operator_lineage, send_children, task_children
from spark_lineage.emit.task_event import NO_DETAILS, AirflowTry, JobDetails
from spark_lineage.launch.line import LineCounts
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.outcome import told_end
from spark_lineage.task.at_start import file_of, repeated, with_last_end
from spark_lineage.task.last_end import LastEnd, keep_end
from spark_lineage.task.task_emission import TaskEmission

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.launch.guard import Guard
    from spark_lineage.launch.kill import Kill
    from spark_lineage.launch.log import Log
    from spark_lineage.settings import Settings

# Airflow kills a task five seconds after it has asked it to end.
_SECONDS, _SECONDS_WHEN_KILLED = 10.0, 1.0


class TaskEvents:
    """One task's: at its beginning, while it runs, and once at its end.

    ``operator_lineage`` is what the OpenLineage provider asks the operator for after the end.
    """

    def __init__(self, context: Context, kill: Kill, *, guard: Guard, logger: Log) -> None:
        self.operator_lineage: OperatorLineage[Any, Any] | None = None
        self._has_begun = self._has_ended = False
        self._context = context
        self._kill = kill
        self._settings: Settings | None = None
        self._guard = guard
        self._log = logger
        self._emission: TaskEmission | None = None
        self._details = NO_DETAILS
        self._last_end: Path | None = None
        self._repeated: LastEnd | None = None

    def open(self, settings: Settings) -> None:
        """Learn where to send to; without it, nothing is told."""
        self._settings = settings
        with self._guard("The task's events are not sent to its connections"):
            context = self._context
            airflow = AirflowTry(context["ti"], context["dag_run"], context["dag"], context["task"])
            self._details = JobDetails.of(settings, context["task"], context["ti"])
            self._emission = TaskEmission(airflow, settings, guard=self._guard, logger=self._log)
        with self._guard("The next START repeats no datasets", can_fail=False):
            self._last_end = file_of(settings, self._context["task"])
            self._repeated = repeated(settings, self._last_end)

    def begin(self, declared: TaskLineage | None) -> None:
        """Tell the connections that the run has begun, once; the provider has done so already.

        :param declared: the task's inlets and outlets, None where it has none
        """
        emission, settings = self._emission, self._settings
        if emission is None or settings is None or self._has_begun or not emission.is_needed:
            return
        self._has_begun = True
        with self._guard("The START of the task is not sent", can_fail=False):
            lineage = declared or TaskLineage("RUNNING")
            if self._repeated is not None and self._repeated.is_streaming:
                lineage = structs.replace(lineage, is_streaming=True)
            emission.begin(with_last_end(self._told(settings, lineage, None), self._repeated))

    def go_on(self, lineage: TaskLineage, counts: LineCounts) -> None:
        """Tell what is known so far, beside what the START has repeated."""
        if self._settings is None:
            return
        told = with_last_end(self._told(self._settings, lineage, counts), self._repeated)
        if self._has_ended or self._emission is None:
            return
        content = self._emission.go_on(told)
        if lineage.is_streaming:
            # A stream has no end but a kill.
            self._keep_end(content)

    def end(
        self,
        lineage: TaskLineage,
        counts: LineCounts | None,
        error: BaseException | None,
        directory: Path | None,
    ) -> None:
        """Tell the end; once it is told, what is told after that changes nothing.

        :param counts: of the lines that were read, None where nothing was collected: then the provider looks elsewhere
        :param error: what ended the task, None where it succeeded
        :param directory: of the launch, which keeps the events
        """
        if self._settings is None or self._has_ended:
            return
        earlier = self._repeated
        is_idle = earlier is not None and earlier.is_streaming and not (lineage.inputs or lineage.outputs)
        if is_idle:
            # A stream to which nothing new came goes on with what it did: Marquez would take it for a batch.
            lineage = structs.replace(lineage, is_streaming=True)
        told = with_last_end(self._told(self._settings, lineage, counts), earlier if is_idle else None)
        if counts is not None:
            self.operator_lineage = told
        if self._emission is not None:
            end, seconds = told_end(lineage.state, error), self._seconds(self._settings)
            content = self._emission.end(
                told, end, error=str(error or ""), directory=directory, at_most_seconds=seconds
            )
            if end == "COMPLETE" or lineage.is_streaming:
                self._keep_end(content)
        # Whatever interrupts what comes before this, the end is told again, of what is known then.
        self._has_ended = self._emission is None or self._emission.has_ended
        with self._guard("Child runs are not told", can_fail=False):
            self._tell_children(self._settings, lineage, directory)

    def deliver(self) -> None:
        """Wait until the connections have taken everything, but no longer than the settings and a kill allow."""
        if self._emission is not None and self._settings is not None:
            self._emission.deliver(self._seconds(self._settings))

    def _seconds(self, settings: Settings) -> float:
        return self._kill.seconds(settings.delivery_timeout_seconds)

    def _keep_end(self, content: bytes | None) -> None:
        """Keep what an event names, for the START of the next run."""
        if content is not None and self._last_end is not None:
            with self._guard("The next START repeats no datasets", can_fail=False):
                keep_end(self._last_end, content)

    def _told(self, settings: Settings, lineage: TaskLineage, counts: LineCounts | None) -> OperatorLineage[Any, Any]:
        return operator_lineage(lineage, counts, int(settings.max_event_bytes), self._log, self._details)

    def _tell_children(self, settings: Settings, lineage: TaskLineage, directory: Path | None) -> None:
        task_instance = self._context["ti"]
        events = task_children(lineage, settings, task_instance)
        if self._emission is not None:
            self._emission.children(events, directory)
        seconds = _SECONDS_WHEN_KILLED if lineage.state == "ABORT" else _SECONDS
        send_children(events, seconds, task_instance, self._log)
