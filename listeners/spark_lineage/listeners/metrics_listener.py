"""Counts jobs, changes of status and changes of catalogs in Airflow's own metrics, with DAG and task as tags."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from spark_lineage.listeners.listener import (
    CatalogModificationEvent,
    Event,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    ListenerContext,
    TaskListener,
)

if TYPE_CHECKING:
    from spark_lineage.merge.transition import TaskNumbers


# The counters of Spark's tasks, by the fields of ``TaskNumbers``.
_COUNTED = {
    "tasks": "tasks",
    "failed": "tasks.failed",
    "killed": "tasks.killed",
    **{name: name for name in ("bytes_read", "bytes_written", "memory_bytes_spilled", "disk_bytes_spilled")},
}
# Airflow leaves out a metric whose name has another character, or is longer than 250 of them.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


class MetricsListener(TaskListener):
    """All names begin with ``spark_lineage.``.

    - ``job.created``: jobs that were submitted; ``job.duration``: the time from that to the end of the task
    - ``job.SUBJECT.STATUS``: changes of status, as ``job.task.finished`` and ``job.spark_job.failed``
    - ``job.inputs`` and ``job.outputs``: datasets of the task's final lineage; ``job.rows``: rows that it wrote
    - ``application.…`` at the end, of all its Spark applications together: ``tasks``, ``tasks.failed``,
      ``tasks.killed``, ``bytes_read``, ``bytes_written``, ``memory_bytes_spilled``, ``disk_bytes_spilled``; as gauges
      ``gc_share`` (0 to 1) and ``accumulator.NAME``, with an underscore for what a metric's name may not hold
    - ``catalog.CHANGE``: changes of catalogs, as ``catalog.create_table``; ``catalog.ignored``: those that changed
      nothing
    """

    def __init__(self, context: ListenerContext) -> None:
        super().__init__(context)
        self._created: datetime | None = None
        self._tags = {"dag_id": context.task.dag_id, "task_id": context.task.task_id}

    def on_event(self, event: Event) -> None:
        """Count the event."""
        match event:
            case JobCreatedEvent():
                self._created = event.time
                self._count("job.created")
            case JobExecutionStatusEvent():
                self._count(f"job.{event.subject.lower()}.{event.new_status.lower()}")
                if event.is_end:
                    self._end(event)
            case CatalogModificationEvent():
                self._count(f"catalog.{event.change}_{event.object_type}".lower())
                if event.is_ignored:
                    self._count("catalog.ignored")

    def _end(self, event: JobExecutionStatusEvent) -> None:
        if self._created is not None:
            # A bare number would be seconds, or not, depending on where Airflow sends its metrics.
            self.context.metrics.timing("spark_lineage.job.duration", event.time - self._created, tags=self._tags)
        if event.lineage is not None:
            self._count("job.inputs", len(event.lineage.inputs))
            self._count("job.outputs", len(event.lineage.outputs))
            written = (output.statistics for output in event.lineage.outputs if output.statistics is not None)
            self._count("job.rows", sum(each.row_count or 0 for each in written))
            if event.lineage.status is not None and event.lineage.status.numbers:
                self._of_applications(event.lineage.status.numbers)

    def _of_applications(self, numbers: tuple[TaskNumbers, ...]) -> None:
        for field, name in _COUNTED.items():
            self._count(f"application.{name}", sum(getattr(one, field) for one in numbers))
        if run_millis := sum(one.run_millis for one in numbers):
            self._gauge("gc_share", sum(one.gc_millis for one in numbers) / run_millis)
        accumulators: Counter[str] = Counter()
        for each in (each for one in numbers for each in one.accumulators):
            accumulators[f"accumulator.{_NOT_IN_NAMES.sub('_', each.label)}"] += each.value  # type: ignore[assignment]
        for name, value in accumulators.items():
            self._gauge(name, value)

    def _gauge(self, name: str, value: float) -> None:
        self.context.metrics.gauge(f"spark_lineage.application.{name}", value, tags=self._tags)

    def _count(self, name: str, count: int = 1) -> None:
        self.context.metrics.incr(f"spark_lineage.{name}", count, tags=self._tags)
