"""Counts jobs, changes of status and changes of catalogs in Airflow's own metrics, with DAG and task as tags."""

from __future__ import annotations

from datetime import datetime

from spark_lineage.listeners.listener import (
    CatalogModificationEvent,
    Event,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    ListenerContext,
    TaskListener,
)


class MetricsListener(TaskListener):
    """For both settings; all names begin with ``spark_lineage.``.

    - ``job.created``: jobs that were submitted; ``job.duration``: the time from that to the end of the task
    - ``job.SUBJECT.STATUS``: changes of status, as ``job.task.finished`` and ``job.spark_job.failed``
    - ``job.inputs`` and ``job.outputs``: datasets of the task's final lineage; ``job.rows``: rows that it wrote
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

    def _count(self, name: str, count: int = 1) -> None:
        self.context.metrics.incr(f"spark_lineage.{name}", count, tags=self._tags)
