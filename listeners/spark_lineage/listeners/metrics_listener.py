"""Counts jobs, changes of status and changes of catalogs in Airflow's own metrics, with DAG and task as tags."""

from __future__ import annotations

from datetime import datetime

from spark_lineage.listeners.catalog_modification import CatalogModificationEvent, CatalogModificationListener
from spark_lineage.listeners.job_status import (
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatusChangedEvent,
    JobStatusChangedListener,
    ListenerContext,
)
from spark_lineage.merge.lineage import DatasetLineage


class MetricsListener(JobStatusChangedListener, CatalogModificationListener):
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

    def on_event(self, event: JobStatusChangedEvent | CatalogModificationEvent) -> None:
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
                self._count(f"catalog.{_snake_case(type(event).__name__.removesuffix('Event'))}")
                if event.is_ignored:
                    self._count("catalog.ignored")

    def _end(self, event: JobExecutionStatusEvent) -> None:
        if self._created is not None:
            seconds = (event.time - self._created).total_seconds()
            self.context.metrics.timing("spark_lineage.job.duration", seconds, tags=self._tags)
        if event.lineage is not None:
            self._count("job.inputs", len(event.lineage.inputs))
            self._count("job.outputs", len(event.lineage.outputs))
            self._count("job.rows", sum(_rows(output) for output in event.lineage.outputs))

    def _count(self, name: str, count: int = 1) -> None:
        self.context.metrics.incr(f"spark_lineage.{name}", count, tags=self._tags)


def _rows(output: DatasetLineage) -> int:
    return (output.statistics.row_count or 0) if output.statistics is not None else 0


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
