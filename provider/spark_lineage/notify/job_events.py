"""Makes the events of one job: all with the same names, and without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.transition import Status, StatusTransition
from spark_lineage.notify.catalog_events import CatalogModificationEvent, catalog_events
from spark_lineage.notify.events import JobCreatedEvent, JobExecutionStatusEvent, JobType, TaskRun
from spark_lineage.notify.redacted_lineage import redact_lineage
from spark_lineage.secrets.redaction import redact, redact_value

_STATUS_OF_TASK: Mapping[TaskState, Status] = {
    "COMPLETE": "FINISHED",
    "FAIL": "FAILED",
    "ABORT": "KILLED",
    "RUNNING": "UNKNOWN",
}


class JobEvents(Struct, frozen=True):
    """The maker of one job's events; ``job_namespace`` and ``job_name`` are those of the task's OpenLineage job."""

    task: TaskRun
    job_namespace: str
    job_name: str

    def created(
        self,
        configuration: Mapping[str, str],
        *,
        lineage: TaskLineage | None = None,
        application_ids: tuple[str, ...] = (),
    ) -> JobCreatedEvent:
        """Return the event with which a job begins.

        :param configuration: the Spark properties as they are
        """
        return JobCreatedEvent(
            **self._names(application_ids, lineage),
            lineage=None if lineage is None else redact_lineage(lineage),
            configuration=redact_value(dict(configuration)),
        )

    def changed(
        self,
        transition: StatusTransition,
        *,
        job_type: JobType | None = None,
        application_ids: tuple[str, ...] = (),
    ) -> JobExecutionStatusEvent:
        """Return the event of a change of status in Spark, at the time of that change."""
        return JobExecutionStatusEvent(
            **self._names(application_ids),
            job_type=job_type,
            time=transition.time,
            subject=transition.subject,
            subject_id=transition.subject_id,
            old_status=transition.old_status,
            new_status=transition.new_status,
            source=transition.source,
            application_id=transition.application_id,
            detail=redact(transition.detail),
            exception=redact(transition.exception),
        )

    def ended(
        self,
        state: TaskState,
        lineage: TaskLineage | None,
        *,
        job_type: JobType | None = None,
        exception: str = "",
        application_ids: tuple[str, ...] = (),
    ) -> JobExecutionStatusEvent:
        """Return the event with which the task ends, whether or not there is lineage.

        :param job_type: what is known of it; STREAMING where the lineage has a stream that no transition named
        :param exception: what failed the task, as text; empty where nothing did
        """
        return JobExecutionStatusEvent(
            **self._names(application_ids, lineage),
            job_type="STREAMING" if lineage is not None and lineage.is_streaming else job_type,
            subject="TASK",
            subject_id=f"{self.task.dag_id}.{self.task.task_id}",
            old_status="RUNNING",
            new_status=_STATUS_OF_TASK[state],
            source="airflow",
            exception=redact(exception),
            lineage=None if lineage is None else redact_lineage(lineage),
            is_end=True,
        )

    def catalog(self, lineage: TaskLineage) -> list[CatalogModificationEvent]:
        """Return the events of what the task did to catalogs, in order."""
        ids = _application_ids((), lineage)
        return list(catalog_events(self.task, lineage.catalog_changes, application_ids=ids))

    def _names(self, application_ids: tuple[str, ...], lineage: TaskLineage | None = None) -> dict[str, Any]:
        return {
            "task": self.task,
            "application_ids": _application_ids(application_ids, lineage),
            "job_namespace": self.job_namespace,
            "job_name": self.job_name,
        }


def _application_ids(known: tuple[str, ...], lineage: TaskLineage | None) -> tuple[str, ...]:
    if known or lineage is None:
        return known
    return tuple(sorted({one.application_id for one in lineage.applications if one.application_id}))
