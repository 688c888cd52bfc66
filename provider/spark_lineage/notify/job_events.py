"""Makes the events of one job: all with the same names, and redacted, because listeners may send them anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.merge.lineage import CatalogChange, ColumnChange, JobType, TaskLineage, TaskState
from spark_lineage.merge.transition import Status, StatusTransition
from spark_lineage.naming.identity import storage_identifier
from spark_lineage.notify.events import (
    CatalogModificationEvent,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    TaskRun,
)
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
        job_type: JobType | None = None,
    ) -> JobCreatedEvent:
        """Return the event with which a job begins.

        :param configuration: the Spark properties as they are
        """
        return JobCreatedEvent(
            **self._names(lineage),
            job_type=job_type,
            lineage=None if lineage is None else redact_lineage(lineage),
            configuration=redact_value(dict(configuration)),
        )

    def changed(self, transition: StatusTransition, *, job_type: JobType | None = None) -> JobExecutionStatusEvent:
        """Return the event of a change of status in Spark, at the time of that change."""
        said = structs.asdict(redact_lineage(transition))
        application_id = transition.subject_id if transition.subject == "APPLICATION" else transition.application_id
        known = {"application_ids": (application_id,) if application_id else ()}
        return JobExecutionStatusEvent(**self._names(None) | known, **said, job_type=job_type)

    def ended(
        self, state: TaskState, lineage: TaskLineage | None, *, job_type: JobType | None = None, exception: str = ""
    ) -> JobExecutionStatusEvent:
        """Return the event with which the task ends, whether or not there is lineage.

        :param job_type: what is known of it; STREAMING where the lineage has a stream that no transition named
        :param exception: what failed the task, as text; empty where nothing did
        """
        return JobExecutionStatusEvent(
            **self._names(lineage),
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
        """Return the events of what the task did to catalogs, in order.

        TRUNCATE and OVERWRITE are none: they change what is in a table. OVERWRITE of a view, which has no content, is
        an ALTER.
        """
        return [
            CatalogModificationEvent(
                **structs.asdict(change)
                | {
                    "change": "ALTER" if change.change == "OVERWRITE" else change.change,
                    "previous_name": change.previous_name or "",
                    "columns": _changed_columns(change),
                    "properties": dict(change.properties),
                },
                task=self.task,
                application_ids=application_ids(lineage),
                database=change.database,
                storage=storage_identifier(change.dataset),
            )
            for change in map(redact_lineage, lineage.catalog_changes)
            if change.change != "TRUNCATE" and (change.change, change.object_type) != ("OVERWRITE", "TABLE")
        ]

    def _names(self, lineage: TaskLineage | None) -> dict[str, Any]:
        return {
            "task": self.task,
            "application_ids": application_ids(lineage),
            "job_namespace": self.job_namespace,
            "job_name": self.job_name,
        }


def _changed_columns(change: CatalogChange) -> tuple[ColumnChange, ...]:
    is_made = change.change == "CREATE" and not change.is_ignored
    return tuple(ColumnChange(None, column) for column in change.schema) if is_made else change.columns


def application_ids(lineage: TaskLineage | None) -> tuple[str, ...]:
    """Return the ids of the Spark applications of a task, sorted."""
    applications = () if lineage is None else lineage.applications
    return tuple(sorted({one.application_id for one in applications if one.application_id}))
