"""The result of the merge: the lineage of one task, as plain frozen values.

Names follow the OpenLineage spec 2-0-2 (``Dataset``, ``InputStatistics``, ``ColumnLineage``); times are aware, in UTC.
Every tuple is sorted, so that equal lineage is equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from spark_lineage.merge.transition import StatusSummary
from spark_lineage.naming.identity import DatasetName

# RUNNING is that of the lineage so far, of which what has not ended does not count yet.
TaskState = Literal["RUNNING", "COMPLETE", "FAIL", "ABORT"]
AttemptReason = Literal["failed", "unfinished", "not written"]
PROPERTIES_KEY = "sparkLineage_properties"
Facets = tuple[tuple[str, Raw], ...]
"""Facets that pass through, as JSON by their names."""
Operation = Literal["INSERT", "OVERWRITE", "UPDATE", "DELETE", "MERGE", "TRUNCATE"]
ChangeType = Literal["CREATE", "ALTER", "RENAME", "TRUNCATE", "OVERWRITE", "DROP"]
ObjectType = Literal["TABLE", "VIEW", "DATABASE"]
JobType = Literal["BATCH", "STREAMING"]
Repair = Literal["", "ADD", "DROP", "SYNC"]


class Symlink(Struct, frozen=True, order=True, gc=False):
    """Another name of a dataset (``SymlinksDatasetFacet``); ``type`` is ``TABLE`` or ``LOCATION``."""

    namespace: str
    name: str
    type: str = "TABLE"

    @property
    def dataset(self) -> DatasetName:
        """The name that it gives."""
        return DatasetName(self.namespace, self.name)


class SchemaField(Struct, frozen=True, order=True, gc=False):
    """One column (``SchemaDatasetFacet.fields``); ``fields`` are those of a struct column."""

    name: str
    type: str | None = None
    description: str | None = None
    fields: tuple[SchemaField, ...] = ()


class Transformation(Struct, frozen=True, order=True, gc=False):
    """How a column was made (``ColumnLineageDatasetFacet``): ``type`` is ``DIRECT`` or ``INDIRECT``."""

    type: str
    subtype: str = ""
    description: str = ""
    masking: bool = False


# A value that is passed on as it is.
IDENTITY = Transformation("DIRECT", "IDENTITY")


class InputField(Struct, frozen=True, order=True, gc=False):
    """A column that another one was made from, and how."""

    dataset: DatasetName
    field: str
    transformations: tuple[Transformation, ...] = ()


class ColumnLineage(Struct, frozen=True, gc=False):
    """Where the columns of an output come from: by output column, and for the dataset as a whole (filters, joins)."""

    fields: tuple[tuple[str, tuple[InputField, ...]], ...] = ()
    dataset: tuple[InputField, ...] = ()


class Statistics(Struct, frozen=True, gc=False):
    """Rows, bytes and files that were read or written; ``None`` where Spark did not say."""

    row_count: int | None = None
    size: int | None = None
    file_count: int | None = None


class Storage(Struct, frozen=True, order=True, gc=False):
    """``StorageDatasetFacet``."""

    storage_layer: str
    file_format: str | None = None


class Catalog(Struct, frozen=True, order=True, gc=False):
    """``CatalogDatasetFacet``."""

    framework: str
    type: str
    name: str
    source: str | None = None
    metadata_uri: str | None = None
    warehouse_uri: str | None = None


class Subscription(Struct, frozen=True, order=True, gc=False):
    """How topics of Kafka were read: the ``pattern`` of their names, empty where they were named, and from where.

    ``starting_offsets`` are those of the first read, ``earliest``, ``latest`` or an offset by partition as JSON; empty
    for what no evidence has, such as a new streaming query.
    """

    pattern: str = ""
    starting_offsets: str = ""


class DatasetLineage(Struct, frozen=True, gc=False):
    """A dataset that the task read or left behind; outputs alone have what follows ``statistics``.

    ``lifecycle`` is the ``lifecycleStateChange`` of the last write, ``previous_name`` the name before a rename,
    ``fed_by`` the inputs that it was made from (M8), ``writes`` the distinct kinds of write, in order.
    ``has_data_source`` is False where an event has no room to say where the dataset is. ``foreign`` are facets that
    pass through, as JSON by their names, ``foreign_of_use`` those of this use (``inputFacets``, ``outputFacets``).
    ``partition_keys`` are the columns that it is partitioned by; ``subscription`` is that of an input of Kafka.
    """

    dataset: DatasetName
    schema: tuple[SchemaField, ...] = ()
    symlinks: tuple[Symlink, ...] = ()
    storage: Storage | None = None
    catalog: Catalog | None = None
    versions: tuple[str, ...] = ()
    statistics: Statistics | None = None
    column_lineage: ColumnLineage | None = None
    lifecycle: str | None = None
    previous_name: DatasetName | None = None
    fed_by: tuple[DatasetName, ...] = ()
    writes: tuple[Write, ...] = ()
    has_data_source: bool = True
    foreign: Facets = ()
    foreign_of_use: Facets = ()
    partition_keys: tuple[str, ...] = ()
    subscription: Subscription | None = None

    @property
    def facets(self) -> Mapping[str, Any]:
        """The facets that pass through, decoded, by their names: those of the user, and of other tools."""
        return {name: msgspec.json.decode(content) for name, content in (*self.foreign, *self.foreign_of_use)}

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that the user declared (``spark_lineage.declare``)."""
        properties: Mapping[str, str] = self.facets.get(PROPERTIES_KEY, {}).get("properties", {})
        return properties


class Write(Struct, frozen=True, order=True, gc=False):
    """What kind of write left an output as it is; a mode is empty where it is not known.

    ``mode`` is ``append``, ``overwrite``, ``ignore`` or ``errorifexists`` (``DataFrameWriter.mode``), ``output_mode``
    that of a streaming query. ``is_partial``: an overwrite replaces some of the partitions or rows only.
    """

    operation: Operation
    mode: str = ""
    is_partial: bool = False
    output_mode: str = ""


class ColumnChange(Struct, frozen=True, gc=False):
    """One changed column of an ALTER: ``old`` is None for an added one, ``new`` for a dropped one."""

    old: SchemaField | None
    new: SchemaField | None


class PartitionChange(Struct, frozen=True, gc=False):
    """One changed partition of an ALTER (``day=1/region=eu``): ``old`` is None for an added, ``new`` for a dropped one.

    ``location`` is the place that it is given, empty where the catalog chooses it.
    """

    old: str | None
    new: str | None
    location: str = ""


class CatalogChange(Struct, frozen=True, gc=False):
    """One change of the catalog; what no evidence has is empty.

    ``name`` is what the catalog calls it (``db.table``), ``previous_name`` that before a RENAME. ``schema`` has the
    columns after it, of a DROP the last ones; ``properties`` has the comment and the location of a table, too, and
    ``unset_properties`` the keys that are gone. ``repair`` says which partitions the catalog was told to find in the
    directory (``ADD``, ``DROP`` or ``SYNC``). ``partitioned_by`` has columns, and transforms such as ``days(at)``;
    ``catalog`` is Spark's name for it. ``is_certain`` is false for a DROP of what the
    task never saw: Spark reports ``DROP IF EXISTS`` of a missing table in the same words. ``is_ignored``: nothing
    changed, for a CREATE found it there or a DROP did not (``IF [NOT] EXISTS``, mode ``ignore``); None: unknown.
    """

    change: ChangeType
    object_type: ObjectType
    dataset: DatasetName
    name: str
    time: datetime
    previous_name: str | None = None
    columns: tuple[ColumnChange, ...] = ()
    schema: tuple[SchemaField, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    is_certain: bool = True
    is_ignored: bool | None = False
    catalog: str = ""
    partitioned_by: tuple[str, ...] = ()
    unset_properties: tuple[str, ...] = ()
    partitions: tuple[PartitionChange, ...] = ()
    repair: Repair = ""

    @property
    def database(self) -> str:
        """The database that it is, or is in; empty where its name has none."""
        return self.name if self.object_type == "DATABASE" else self.name.rpartition(".")[0]


class Action(Struct, frozen=True, gc=False):
    """One Spark action (a run that touched datasets), with the names as the task's lineage has them."""

    run_id: str
    job_namespace: str
    job_name: str
    state: TaskState
    started_at: datetime
    ended_at: datetime
    is_streaming: bool
    inputs: tuple[DatasetName, ...] = ()
    outputs: tuple[DatasetName, ...] = ()


class Attempt(Struct, frozen=True, order=True, gc=False):
    """A write that left nothing behind, and why: it failed, never ended, or ended without having written.

    ``error`` is what Spark said where it failed. Its dataset is never an output as well: one that an earlier write
    filled, and that is still there, is an output.
    """

    dataset: DatasetName
    reason: AttemptReason
    error: str = ""


class UnknownDatasets(Struct, frozen=True, order=True, gc=False):
    """A command that succeeded and whose output no evidence names: how often it ran."""

    command: str
    count: int


class UnreadPart(Struct, frozen=True, order=True, gc=False):
    """An operator or command of a plan that no rule reads, or why a plan was not read: in how many executions."""

    part: str
    count: int


class ParentRun(Struct, frozen=True, order=True, gc=False):
    """The run and job that a Spark application names as its parent: the Airflow task."""

    run_id: str
    job_namespace: str
    job_name: str


class Application(Struct, frozen=True, gc=False):
    """One Spark application, as its own events describe it; ``None`` where they do not say.

    ``ui_url`` is the driver's UI (``spark.driver.appUIAddress``), ``is_ended`` whether an end was reported at all.
    """

    run_id: str
    job_namespace: str
    job_name: str
    application_id: str | None = None
    spark_version: str | None = None
    adapter_version: str | None = None
    master: str | None = None
    deploy_mode: str | None = None
    ui_url: str | None = None
    is_ended: bool = False


class TaskLineage(Struct, frozen=True, gc=False):
    """The lineage of one task.

    ``inputs`` existed before the task and were read by it, ``outputs`` are what it leaves behind, ``attempted`` what it
    wrote in vain. ``unconfirmed`` are outputs whose writer reported success but no statistics, as some writes do that
    failed in the driver. ``unknown`` are commands whose targets no evidence names, ``unread`` what was not understood
    of plans. ``actions`` and ``catalog_changes`` are in order of time. ``is_streaming``: a streaming query ran.
    ``run_count`` is the number of distinct Spark runs. ``evidence`` names the sources: ``listener``,
    ``event_log`` or ``driver_ui``.
    ``types_from`` is the time of the run that columns have their types from, None for this one.
    ``status`` is None if the application was not watched. ``foreign`` are facets of its runs that pass through, as JSON
    by their names, ``foreign_of_job`` those of its jobs.
    """

    state: TaskState
    inputs: tuple[DatasetLineage, ...] = ()
    outputs: tuple[DatasetLineage, ...] = ()
    attempted: tuple[Attempt, ...] = ()
    unconfirmed: tuple[DatasetName, ...] = ()
    catalog_changes: tuple[CatalogChange, ...] = ()
    unknown: tuple[UnknownDatasets, ...] = ()
    unread: tuple[UnreadPart, ...] = ()
    actions: tuple[Action, ...] = ()
    applications: tuple[Application, ...] = ()
    parent: ParentRun | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    is_streaming: bool = False
    run_count: int = 0
    evidence: tuple[str, ...] = ()
    types_from: datetime | None = None
    status: StatusSummary | None = None
    foreign: Facets = ()
    foreign_of_job: Facets = ()
