"""The parts of an OpenLineage ``RunEvent`` that the merge needs (spec 2-0-2); field names are OpenLineage's own.

The decoder skips everything else on a line. Facets that the merge does not read (a user's own, reports of a table
format, tags, owners, documentation) pass through on each level. Of several that events of a task have for one thing,
the last counts: the greatest by time and bytes, so that their order does not matter.
"""

# ruff: noqa: N815 - field names are those of the specification
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Raw, Struct, convert, field, structs

from spark_lineage.merge.lineage import (
    PROPERTIES_KEY,
    Catalog,
    Facets,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    Transformation,
)
from spark_lineage.merge.observed import NO_TRANSFORMATION, Edge, Observed, by_name, indirect
from spark_lineage.merge.partitions import branch
from spark_lineage.merge.transition import AwareTime
from spark_lineage.naming.identity import DatasetName, PathPatterns

if TYPE_CHECKING:
    from spark_lineage.naming.options import Naming


Place = Literal["run", "job", "inputs", "outputs", "inputFacets", "outputFacets"]
"""Where a facet stands in an event; ``inputs`` and ``outputs`` are the facets of a dataset that it has in both."""
NO_DATASET = DatasetName("", "")
READ = frozenset({
    "parent", "processing_engine", "spark_applicationDetails", "errorMessage", "nominalTime", "jobType",
    "schema", "symlinks", "columnLineage", "lifecycleStateChange", "storage", "catalog", "version", "dataSource",
    "hierarchy", "inputStatistics", "outputStatistics",
})  # fmt: skip
"""What the merge reads, or makes anew for the task."""
_TECHNICAL = frozenset({
    "debug", "spark.logicalPlan", "spark_unknown", "environment-properties", "spark_properties", "spark_jobDetails",
    "sql", "sourceCode", "subset",
})  # fmt: skip
"""What says how the listener works, or holds of one run alone: a condition on the rows that it read."""
_OURS = "sparkLineage_"


class ForeignFacet(NamedTuple):
    """One facet, as JSON, and where it stands; ``dataset`` is empty on a run and a job."""

    place: Place
    dataset: DatasetName
    name: str
    content: bytes


def foreign(
    place: Place, facets: Mapping[str, Raw] | None, dataset: DatasetName = NO_DATASET
) -> Iterator[ForeignFacet]:
    """Return the facets of one place that the merge does not read, without those that are no objects."""
    for name, content in (facets or {}).items():
        is_read = name in READ or name in _TECHNICAL or (name.startswith(_OURS) and name != PROPERTIES_KEY)
        if not is_read and (text := bytes(content)).startswith(b"{"):
            yield ForeignFacet(place, dataset, name, text)


class ForeignFacets:
    """The last of each facet."""

    def __init__(self, last: Iterable[tuple[float, ForeignFacet]] = ()) -> None:
        self._last: dict[tuple[Place, DatasetName], dict[str, tuple[float, bytes]]] = {}
        for time, facet in last:
            self.add(time, (facet,))

    def __iter__(self) -> Iterator[tuple[float, ForeignFacet]]:
        for (place, dataset), found in self._last.items():
            yield from ((time, ForeignFacet(place, dataset, name, text)) for name, (time, text) in found.items())

    def add(self, time: float, facets: Iterable[ForeignFacet]) -> None:
        """Fold those of one event."""
        for place, dataset, name, content in facets:
            known = self._last.setdefault((place, dataset), {})
            known[name] = max(known.get(name, (time, content)), (time, content))

    def named(self, naming: Naming) -> ForeignFacets:
        """Return the same by the names that a naming has for datasets."""
        if not self._last:
            return self
        return ForeignFacets(
            (time, one._replace(dataset=naming.name(one.dataset.namespace, one.dataset.name)))
            if one.dataset != NO_DATASET
            else (time, one)
            for time, one in self
        )

    def of(self, place: Place, names: Iterable[DatasetName] = (NO_DATASET,)) -> Facets:
        """Return the facets of a run, a job or a dataset, which may have several names, by their own names."""
        found: dict[str, tuple[float, bytes]] = {}
        for dataset in names:
            for name, last in self._last.get((place, dataset), {}).items():
                found[name] = max(found.get(name, last), last)
        return tuple((name, Raw(content)) for name, (_, content) in sorted(found.items()))


EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
# Every reader of JSON holds such numbers exactly (RFC 8259, 6); Spark counts less.
_Count = Annotated[int, Meta(gt=-(2**53), lt=2**53)]
# Iceberg finds rows again by these, which are no columns of the table (org.apache.iceberg.MetadataColumns).
_ICEBERG_COLUMNS = frozenset({"_file", "_pos", "_spec_id", "_partition", "_deleted"})
_KAFKA = "kafka://"
# The type of a column of JVM objects, as the plan over an RDD has them: no dataset has one (Catalyst's ObjectType).
_JVM_OBJECT = "object"
# The name of a table ends with the branch, tag or snapshot that Iceberg reads (org.apache.iceberg.spark.SparkCatalog).
_SELECTED = re.compile(r"(?P<table>.+)\.(?:branch_(?P<branch>.+)|tag_.+|snapshot_id_\d+|at_timestamp_\d+)", re.DOTALL)
# org.apache.iceberg.MetadataTableType
METADATA_TABLE = re.compile(
    r"(?:all_)?(?:(?:data_|delete_)?files|entries|manifests)"
    r"|history|metadata_log_entries|snapshots|refs|partitions|position_deletes"
)
_PATH_PATTERNS = PathPatterns().literal
# The listener's KeyValueTrimmer cuts these folders.
_NAMED_FOLDERS = re.compile(r"(?:/[^/]*=[^/]*)*")


class _ParentFacet(Struct, gc=False):
    run: Run
    job: Job


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


class _Properties(Struct, gc=False):
    event_log_directory: str | None = field(default=None, name="spark.eventLog.dir")


class _PropertiesFacet(Struct, gc=False):
    properties: _Properties = field(default_factory=_Properties)


class RunFacets(Struct, gc=False):
    """The run facets that are read; those whose names begin with ``spark_`` are the listener's own."""

    parent: _ParentFacet | None = None
    processing_engine: EngineFacet | None = None
    spark_applicationDetails: ApplicationFacet | None = None
    spark_properties: _PropertiesFacet | None = None


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
    """One event, without its datasets."""

    eventTime: AwareTime
    run: Run
    job: Job
    producer: str = ""
    eventType: EventType | None = None


class _SchemaFacet(Struct, gc=False):
    fields: tuple[SchemaField, ...] = ()


class _SymlinksFacet(Struct, gc=False):
    identifiers: frozenset[Symlink] = frozenset()


class _LifecycleFacet(Struct, gc=False):
    lifecycleStateChange: str
    previousIdentifier: DatasetName | None = None


class _StorageFacet(Struct, gc=False):
    storageLayer: str
    fileFormat: str | None = None


class _CatalogFacet(Struct, gc=False):
    framework: str
    type: str
    name: str
    source: str | None = None
    metadataUri: str | None = None
    warehouseUri: str | None = None


class _VersionFacet(Struct, gc=False):
    datasetVersion: str


class _Transformation(Struct, gc=False):
    type: str
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class _InputField(Struct, gc=False):
    namespace: str
    name: str
    field: str
    transformations: list[_Transformation] | None = None


class _Column(Struct, gc=False):
    inputFields: list[_InputField] = []


class _ColumnLineageFacet(Struct, gc=False):
    fields: dict[str, _Column] = {}
    dataset: list[_InputField] | None = None


class _DatasetFacets(Struct, gc=False):
    schema: _SchemaFacet | None = None
    symlinks: _SymlinksFacet | None = None
    lifecycleStateChange: _LifecycleFacet | None = None
    columnLineage: _ColumnLineageFacet | None = None
    storage: _StorageFacet | None = None
    catalog: _CatalogFacet | None = None
    version: _VersionFacet | None = None


class _StatisticsFacet(Struct, gc=False):
    rowCount: _Count | None = None
    size: _Count | None = None
    fileCount: _Count | None = None


class _LocationCondition(Struct, gc=False):
    """The paths as they were before the listener cut partitions from them (``LocationSubsetCondition``)."""

    locations: list[str] = []


class _Subset(Struct, gc=False):
    inputCondition: _LocationCondition | None = None
    outputCondition: _LocationCondition | None = None


class _ScanReport(Struct, gc=False):
    snapshotId: Any = None


class _DataFacets(Struct, gc=False):
    inputStatistics: _StatisticsFacet | None = None
    icebergScanReport: _ScanReport | None = None
    outputStatistics: _StatisticsFacet | None = None
    subset: _Subset | None = None


class Dataset(Struct, gc=False):
    """``InputDataset`` and ``OutputDataset``."""

    namespace: str
    name: str
    facets: _DatasetFacets | None = None
    inputFacets: _DataFacets | None = None
    outputFacets: _DataFacets | None = None


class RawDataset(Struct, gc=False):
    """The facets of a dataset by their names."""

    facets: dict[str, Raw] | None = None
    inputFacets: dict[str, Raw] | None = None
    outputFacets: dict[str, Raw] | None = None


_NO_FACETS = _DatasetFacets()


def foreign_facets(
    place: Literal["inputs", "outputs"], datasets: Iterable[Dataset], raw: Iterable[RawDataset]
) -> Iterator[ForeignFacet]:
    """Return the facets of the datasets of one event that the merge does not read; ``raw`` are the same datasets."""
    for dataset, facets in zip(datasets, raw, strict=True):
        name = _name(dataset).whole
        yield from foreign(place, facets.facets, name)
        yield from foreign("inputFacets", facets.inputFacets, name)
        yield from foreign("outputFacets", facets.outputFacets, name)


def observe(datasets: Iterable[Dataset]) -> tuple[Observed, ...]:
    """Return the datasets of one event, one entry a name, sorted by name."""
    found = [_observe(dataset) for dataset in datasets if not _is_metadata(dataset)]
    return by_name(each for one in found for each in (_topics(one) if "," in one.dataset.name else (one,)))


def _is_metadata(dataset: Dataset) -> bool:
    """Whether it is what Iceberg keeps of a table, which the listener gives the place of the table (``db.t.files``)."""
    links = dataset.facets.symlinks.identifiers if dataset.facets and dataset.facets.symlinks else frozenset()
    parts = [link.name.split(".") for link in links]
    table = _last_part(dataset.name)
    return bool(parts) and all(
        len(each) > 1 and each[-2] == table and METADATA_TABLE.fullmatch(each[-1].casefold()) for each in parts
    )


def _topics(one: Observed) -> list[Observed]:
    """Return each topic of Kafka by its own name: the listener names several as ``a,b``, and no topic holds a comma."""
    if not one.dataset.namespace.startswith(_KAFKA):
        return [one]
    names = filter(None, one.dataset.name.split(","))
    return [structs.replace(one, dataset=DatasetName(one.dataset.namespace, name)) for name in names]


def schema_and_catalog(facets: Mapping[str, Any]) -> tuple[tuple[SchemaField, ...], Catalog | None]:
    """Return the columns and the catalog that the facets of a dataset have, as decoded JSON."""
    found = convert(facets, _DatasetFacets)
    catalog = Catalog(*structs.astuple(found.catalog)) if found.catalog else None
    return found.schema.fields if found.schema else (), catalog


def _observe(dataset: Dataset) -> Observed:
    facets = dataset.facets or _NO_FACETS
    steering = _ICEBERG_COLUMNS if facets.storage and facets.storage.storageLayer == "iceberg" else frozenset()
    lifecycle = facets.lifecycleStateChange
    statistics = (dataset.inputFacets and dataset.inputFacets.inputStatistics) or (
        dataset.outputFacets and dataset.outputFacets.outputStatistics
    )
    edges = _edges(facets.columnLineage) if facets.columnLineage else ()
    name, symlinks = _without_branch(_name(dataset), facets.symlinks.identifiers if facets.symlinks else frozenset())
    # The version of a branch that is written is that of main.
    version = None if name.partition and dataset.outputFacets is not None else facets.version
    report = dataset.inputFacets and dataset.inputFacets.icebergScanReport
    return Observed(
        dataset=name,
        symlinks=symlinks,
        schema=tuple(
            field
            for field in (facets.schema.fields if facets.schema else ())
            if field.name not in steering and field.type != _JVM_OBJECT
        ),
        storage=Storage(*structs.astuple(facets.storage)) if facets.storage else None,
        catalog=Catalog(*structs.astuple(facets.catalog)) if facets.catalog else None,
        versions=frozenset((version.datasetVersion,)) if version else frozenset(),
        lifecycles=frozenset((lifecycle.lifecycleStateChange,)) if lifecycle else frozenset(),
        previous_name=lifecycle.previousIdentifier if lifecycle else None,
        edges=frozenset(edge for edge in edges if edge[2] not in steering),
        statistics=Statistics(*structs.astuple(statistics)) if statistics else None,
        scanned=frozenset((report.snapshotId,)) if report and isinstance(report.snapshotId, float) else frozenset(),
    )


def _without_branch(name: DatasetName, symlinks: frozenset[Symlink]) -> tuple[DatasetName, frozenset[Symlink]]:
    """Return a table of Iceberg and its names without the branch, tag or snapshot that they end with."""
    table = _last_part(name.name)
    partition, links = name.partition, set()
    for link in symlinks:
        match = _SELECTED.fullmatch(link.name)
        if match and _last_part(match["table"]) == table:
            partition = branch(match["branch"]) if match["branch"] else partition
            links.add(structs.replace(link, name=match["table"]))
        else:
            links.add(link)
    return DatasetName(name.namespace, name.name, partition), frozenset(links)


def _last_part(name: str) -> str:
    """Return the name of a table without its catalog, database or directory."""
    return name.rpartition("/")[2].rpartition(".")[2]


def _name(dataset: Dataset) -> DatasetName:
    """Return the name, of a partition its path; the listener also cuts folders that no engine writes for one.

    A name that lacks more than those was shortened by the user's option (``dataset.removePath.pattern``).
    """
    subset = (dataset.inputFacets and dataset.inputFacets.subset) or (
        dataset.outputFacets and dataset.outputFacets.subset
    )
    condition = (subset and (subset.inputCondition or subset.outputCondition)) or _LocationCondition()
    places = [DatasetName(dataset.namespace, location) for location in condition.locations]
    whole = set(map(_PATH_PATTERNS.resolve, places))
    below = {each.name.removeprefix(dataset.name.rstrip("/")) for each in whole}
    if len(whole) != 1 or not all(map(_NAMED_FOLDERS.fullmatch, below)):
        return DatasetName(dataset.namespace, dataset.name)
    return places[0] if len(places) == 1 else whole.pop()


def _edges(facet: _ColumnLineageFacet) -> Iterator[Edge]:
    for column, made_from in facet.fields.items():
        for source in made_from.inputFields:
            for how in _transformations(source):
                yield column, DatasetName(source.namespace, source.name), source.field, how
    for source in facet.dataset or ():
        # The listener labels some of these DIRECT, too; what holds for the whole is a filter, a join or a sort.
        all_of = _transformations(source)
        for how in [how for how in all_of if how.type == "INDIRECT"] or map(indirect, all_of):
            yield None, DatasetName(source.namespace, source.name), source.field, how


def _transformations(source: _InputField) -> list[Transformation]:
    return [
        Transformation(how.type, how.subtype or "", how.description or "", bool(how.masking))
        for how in source.transformations or ()
    ] or [NO_TRANSFORMATION]
