"""Events about a job (created, another status, its lineage at the end) and about changes of catalogs.

After Flink's FLIP-314 and FLIP-294, in Airflow's words: the job is the task, and what runs in Spark for it are its
application, driver, SparkJobs and SQL executions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct, field

from spark_lineage.merge.lineage import (
    ColumnChange,
    JobType,
    ObjectType,
    PartitionChange,
    Repair,
    SchemaField,
    TaskLineage,
)
from spark_lineage.merge.transition import Status, Subject
from spark_lineage.naming.identity import DatasetName, StorageIdentifier

# The size of an event without long texts, as tracemalloc has it.
_BYTES = 300


class TaskRun(Struct, frozen=True):
    """The try of a task that events are about, as Airflow names it; ``map_index`` is -1 where nothing is mapped."""

    dag_id: str
    task_id: str
    run_id: str
    map_index: int = -1
    try_number: int = 1


class Event(Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    """The fields of every event: the try of the task, its Spark applications as far as known, and a time in UTC.

    As JSON (``msgspec.json.encode``) an event names its type in ``event``.
    """

    task: TaskRun
    application_ids: tuple[str, ...] = ()
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def is_kept(self) -> bool:
        """Whether it is delivered whatever else is left out: the beginning and the end of a job."""
        return isinstance(self, JobCreatedEvent) or (isinstance(self, JobExecutionStatusEvent) and self.is_end)

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes; only that of what there may be many of matters."""
        return _BYTES + sum(len(getattr(self, name, "")) for name in ("detail", "exception"))


class JobStatusChangedEvent(Event, frozen=True, kw_only=True):
    """Something about the job: its OpenLineage name is ``job_name``, in ``job_namespace``.

    ``job_type`` is STREAMING from the first streaming query on, and BATCH when the task has ended without any. Before
    that it is BATCH for a job of SQL, else what the last run of the same program was, and None for the first run.
    """

    job_namespace: str
    job_name: str
    job_type: JobType | None = None


class JobCreatedEvent(JobStatusChangedEvent, frozen=True, kw_only=True):
    """The job is about to be submitted, or was taken over from the try before.

    ``lineage`` is what is known so far: the task's inlets and outlets, and the datasets of the last run of the same
    program that succeeded; None where it has none. ``configuration`` are the Spark properties that it is submitted
    with, without secrets.
    """

    lineage: TaskLineage | None = None
    configuration: Mapping[str, str] = {}


class JobExecutionStatusEvent(JobStatusChangedEvent, frozen=True, kw_only=True):
    """Something has another status: the ``TASK`` itself, or what Spark runs for it (the fields of StatusTransition).

    ``old_status`` is None at first. ``exception`` and ``detail`` are the source's words without secrets, or empty.
    ``lineage`` is the task's final lineage: the event with which the task ends (``is_end``) has it, where there is one.
    """

    subject: Subject | Literal["TASK"]
    subject_id: str
    old_status: Status | None
    new_status: Status
    source: str = ""
    application_id: str = ""
    detail: str = ""
    exception: str = ""
    lineage: TaskLineage | None = None
    is_end: bool = False


class CatalogModificationEvent(Event, frozen=True, kw_only=True):
    """One change of a table, view or database that has happened, at ``time``.

    ``change`` and ``object_type`` say what happened to what. ``name`` is what the catalog calls it (``db.table``,
    ``db``), ``previous_name`` what it was called before a RENAME; ``catalog`` and ``database`` say where it is.
    ``dataset`` is its dataset as the task's lineage has it, ``storage`` what that physically is, None for views,
    databases, and what has no known form. ``schema`` has all columns after the change, of a DROP the last ones;
    ``columns`` and ``properties`` (comment and location among them) are those that changed, of a CREATE all;
    ``unset_properties`` are the keys that are gone. ``partitions`` are those that a command added, dropped, renamed or
    moved, ``repair`` is what one was to look for in the directory (``ADD``, ``DROP``, ``SYNC``). ``partitioned_by`` has
    columns, and transforms such as ``days(at)``. What is unknown is empty. ``is_ignored`` is true where nothing
    changed, for a CREATE found it there already or a DROP found nothing (``IF [NOT] EXISTS``), None where that is
    unknown. ``is_certain`` is false where it may not have happened.
    """

    change: Literal["CREATE", "ALTER", "RENAME", "DROP"]
    object_type: ObjectType
    name: str
    dataset: DatasetName
    previous_name: str = ""
    catalog: str = ""
    database: str = ""
    storage: StorageIdentifier | None = None
    columns: tuple[ColumnChange, ...] = ()
    schema: tuple[SchemaField, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    unset_properties: tuple[str, ...] = ()
    partitions: tuple[PartitionChange, ...] = ()
    repair: Repair = ""
    is_ignored: bool | None = False
    is_certain: bool = True
