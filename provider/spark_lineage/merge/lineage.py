"""What the merge gives: the lineage of one task, as plain frozen values.

Names follow the OpenLineage spec 2-0-2 (``Dataset``, ``InputStatistics``, ``ColumnLineage``); times are aware, in UTC.
Every tuple is sorted, so that equal lineage is equal byte for byte.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from spark_lineage.naming.identity import DatasetName

TaskState = Literal["COMPLETE", "FAIL", "ABORT"]
AttemptReason = Literal["failed", "unfinished", "not written"]


class Symlink(Struct, frozen=True, order=True, gc=False):
    """Another name of a dataset (``SymlinksDatasetFacet``); ``type`` is ``TABLE`` or ``LOCATION``."""

    namespace: str
    name: str
    type: str

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


class DatasetLineage(Struct, frozen=True, gc=False):
    """A dataset that the task read or left behind.

    ``lifecycle`` is the ``lifecycleStateChange`` of the last write (``CREATE``, ``OVERWRITE``, ...), ``previous_name``
    what a rename took it from; both, and ``column_lineage``, are for outputs alone.
    """

    dataset: DatasetName
    schema: tuple[SchemaField, ...] = ()
    symlinks: tuple[Symlink, ...] = ()
    storage: Storage | None = None
    catalog: Catalog | None = None
    version: str | None = None
    statistics: Statistics | None = None
    column_lineage: ColumnLineage | None = None
    lifecycle: str | None = None
    previous_name: DatasetName | None = None


class Attempt(Struct, frozen=True, order=True, gc=False):
    """A write that left nothing behind, and why: it failed, never ended, or ended without having written."""

    dataset: DatasetName
    reason: AttemptReason


class ParentRun(Struct, frozen=True, gc=False):
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
    wrote in vain. ``unconfirmed`` are outputs whose writer reported success but no statistics, which the listener also
    does for some writes that failed in the driver. ``run_count`` is the number of distinct Spark runs merged.
    """

    state: TaskState
    inputs: tuple[DatasetLineage, ...] = ()
    outputs: tuple[DatasetLineage, ...] = ()
    attempted: tuple[Attempt, ...] = ()
    unconfirmed: tuple[DatasetName, ...] = ()
    applications: tuple[Application, ...] = ()
    parent: ParentRun | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    run_count: int = 0
