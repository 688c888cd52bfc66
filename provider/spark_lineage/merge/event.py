"""The parts of an OpenLineage ``RunEvent`` that the merge needs, as typed structs (spec 2-0-2).

Everything else on a line is skipped by the decoder without being built. Field names are OpenLineage's own.
"""

# ruff: noqa: N815 - field names are those of the specification
from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
# A time without an offset could not be compared with the others.
AwareTime = Annotated[datetime, Meta(tz=True)]
# What every reader of JSON holds exactly (RFC 8259, 6), and more than Spark counts.
Count = Annotated[int, Meta(gt=-(2**53), lt=2**53)]


class ParentRunId(Struct, gc=False):
    """``ParentRunFacet.run``."""

    runId: str


class ParentJob(Struct, gc=False):
    """``ParentRunFacet.job``."""

    namespace: str
    name: str


class ParentFacet(Struct, gc=False):
    """``ParentRunFacet``."""

    run: ParentRunId
    job: ParentJob


class EngineFacet(Struct, gc=False):
    """``ProcessingEngineRunFacet``."""

    version: str | None = None
    openlineageAdapterVersion: str | None = None


class ApplicationFacet(Struct, gc=False):
    """``spark_applicationDetails``, a facet of the Spark listener's own."""

    applicationId: str | None = None
    master: str | None = None
    deployMode: str | None = None
    uiWebUrl: str | None = None


class PropertiesFacet(Struct, gc=False):
    """``spark_properties``, a facet of the Spark listener's own, by the names of Spark properties."""

    class Properties(Struct, gc=False):
        """Those that are read."""

        event_log_directory: str | None = field(default=None, name="spark.eventLog.dir")

    properties: Properties = field(default_factory=Properties)


class RunFacets(Struct, gc=False):
    """The run facets that are read."""

    parent: ParentFacet | None = None
    processing_engine: EngineFacet | None = None
    spark_applicationDetails: ApplicationFacet | None = None
    spark_properties: PropertiesFacet | None = None


class Run(Struct, gc=False):
    """``Run``."""

    runId: str
    facets: RunFacets | None = None


class JobTypeFacet(Struct, gc=False):
    """``JobTypeJobFacet``: ``APPLICATION``, ``SQL_JOB`` or ``RDD_JOB``, ``BATCH`` or ``STREAMING``, and whose it is."""

    integration: str | None = None
    jobType: str | None = None
    processingType: str | None = None


class JobFacets(Struct, gc=False):
    """The job facets that are read."""

    jobType: JobTypeFacet | None = None


class Job(Struct, gc=False):
    """``Job``."""

    namespace: str
    name: str
    facets: JobFacets | None = None


class RunEvent(Struct, gc=False):
    """One event; ``inputs`` and ``outputs`` are still JSON, because most events repeat what another one said."""

    eventTime: AwareTime
    run: Run
    job: Job
    eventType: EventType | None = None
    inputs: Raw = Raw(b"[]")
    outputs: Raw = Raw(b"[]")


class FieldFacet(Struct, gc=False):
    """``SchemaDatasetFacetFields``."""

    name: str
    type: str | None = None
    description: str | None = None
    fields: list[FieldFacet] = []


class SchemaFacet(Struct, gc=False):
    """``SchemaDatasetFacet``."""

    fields: list[FieldFacet] = []


class Identifier(Struct, gc=False):
    """``SymlinksDatasetFacetIdentifiers``, and ``previousIdentifier`` of a rename."""

    namespace: str
    name: str
    type: str = "TABLE"


class SymlinksFacet(Struct, gc=False):
    """``SymlinksDatasetFacet``."""

    identifiers: list[Identifier] = []


class LifecycleFacet(Struct, gc=False):
    """``LifecycleStateChangeDatasetFacet``."""

    lifecycleStateChange: str
    previousIdentifier: Identifier | None = None


class StorageFacet(Struct, gc=False):
    """``StorageDatasetFacet``."""

    storageLayer: str
    fileFormat: str | None = None


class CatalogFacet(Struct, gc=False):
    """``CatalogDatasetFacet``."""

    framework: str
    type: str
    name: str
    source: str | None = None
    metadataUri: str | None = None
    warehouseUri: str | None = None


class VersionFacet(Struct, gc=False):
    """``DatasetVersionDatasetFacet``."""

    datasetVersion: str


class TransformationFacet(Struct, gc=False):
    """``ColumnLineageDatasetFacet``'s ``Transformation``."""

    type: str
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class InputFieldFacet(Struct, gc=False):
    """``ColumnLineageDatasetFacet``'s ``InputField``."""

    namespace: str
    name: str
    field: str
    transformations: list[TransformationFacet] | None = None


class ColumnFacet(Struct, gc=False):
    """``ColumnLineageDatasetFacet``'s ``Fields``."""

    inputFields: list[InputFieldFacet] = []


class ColumnLineageFacet(Struct, gc=False):
    """``ColumnLineageDatasetFacet``."""

    fields: dict[str, ColumnFacet] = {}
    dataset: list[InputFieldFacet] | None = None


class DatasetFacets(Struct, gc=False):
    """The dataset facets that are read."""

    schema: SchemaFacet | None = None
    symlinks: SymlinksFacet | None = None
    lifecycleStateChange: LifecycleFacet | None = None
    columnLineage: ColumnLineageFacet | None = None
    storage: StorageFacet | None = None
    catalog: CatalogFacet | None = None
    version: VersionFacet | None = None


class StatisticsFacet(Struct, gc=False):
    """``InputStatisticsInputDatasetFacet`` and ``OutputStatisticsOutputDatasetFacet``."""

    rowCount: Count | None = None
    size: Count | None = None
    fileCount: Count | None = None


class LocationCondition(Struct, gc=False):
    """``LocationSubsetCondition``: the paths as they were before the listener cut partitions from them."""

    locations: list[str] = []


class InputSubsetFacet(Struct, gc=False):
    """``InputSubsetInputDatasetFacet``."""

    inputCondition: LocationCondition | None = None


class OutputSubsetFacet(Struct, gc=False):
    """``OutputSubsetOutputDatasetFacet``."""

    outputCondition: LocationCondition | None = None


class InputFacets(Struct, gc=False):
    """``InputDatasetInputFacets``."""

    inputStatistics: StatisticsFacet | None = None
    subset: InputSubsetFacet | None = None


class OutputFacets(Struct, gc=False):
    """``OutputDatasetOutputFacets``."""

    outputStatistics: StatisticsFacet | None = None
    subset: OutputSubsetFacet | None = None


class Dataset(Struct, gc=False):
    """``InputDataset`` and ``OutputDataset``."""

    namespace: str
    name: str
    facets: DatasetFacets | None = None
    inputFacets: InputFacets | None = None
    outputFacets: OutputFacets | None = None
