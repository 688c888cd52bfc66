"""Reads the datasets of an OpenLineage event (spec 2-0-2); field names are OpenLineage's own."""

# ruff: noqa: N815 - field names are those of the specification
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta, Struct, structs

from spark_lineage.merge.lineage import Catalog, SchemaField, Statistics, Storage, Symlink, Transformation
from spark_lineage.merge.observed import NO_TRANSFORMATION, Edge, Observed, by_name, indirect
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.path_patterns import PathPatterns

# What every reader of JSON holds exactly (RFC 8259, 6), and more than Spark counts.
_Count = Annotated[int, Meta(gt=-(2**53), lt=2**53)]
# What Iceberg finds rows again by is no column of the table (org.apache.iceberg.MetadataColumns).
_ICEBERG_COLUMNS = frozenset({"_file", "_pos", "_spec_id", "_partition", "_deleted"})
# The type of a column of JVM objects, as the plan over an RDD has them: no dataset has one (Catalyst's ObjectType).
_JVM_OBJECT = "object"
_PATH_PATTERNS = PathPatterns()


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


class _DataFacets(Struct, gc=False):
    inputStatistics: _StatisticsFacet | None = None
    outputStatistics: _StatisticsFacet | None = None
    subset: _Subset | None = None


class Dataset(Struct, gc=False):
    """``InputDataset`` and ``OutputDataset``."""

    namespace: str
    name: str
    facets: _DatasetFacets | None = None
    inputFacets: _DataFacets | None = None
    outputFacets: _DataFacets | None = None


_NO_FACETS = _DatasetFacets()


def observe(datasets: Iterable[Dataset]) -> tuple[Observed, ...]:
    """Return the datasets of one event, one entry a name, sorted by name."""
    return by_name(map(_observe, datasets))


def _observe(dataset: Dataset) -> Observed:
    facets = dataset.facets or _NO_FACETS
    steering = _ICEBERG_COLUMNS if facets.storage and facets.storage.storageLayer == "iceberg" else frozenset()
    lifecycle = facets.lifecycleStateChange
    return Observed(
        dataset=_name(dataset),
        symlinks=facets.symlinks.identifiers if facets.symlinks else frozenset(),
        schema=tuple(
            field
            for field in (facets.schema.fields if facets.schema else ())
            if field.name not in steering and field.type != _JVM_OBJECT
        ),
        storage=Storage(*structs.astuple(facets.storage)) if facets.storage else None,
        catalog=Catalog(*structs.astuple(facets.catalog)) if facets.catalog else None,
        version=facets.version.datasetVersion if facets.version else None,
        lifecycles=frozenset((lifecycle.lifecycleStateChange,)) if lifecycle else frozenset(),
        previous_name=lifecycle.previousIdentifier if lifecycle else None,
        edges=frozenset(edge for edge in _edges(facets.columnLineage) if edge[2] not in steering)
        if facets.columnLineage
        else frozenset(),
        statistics=_statistics(dataset),
    )


def _name(dataset: Dataset) -> DatasetName:
    """Return the name; the listener also cuts folders with a ``=`` that no engine writes for a partition."""
    subset = (dataset.inputFacets and dataset.inputFacets.subset) or (
        dataset.outputFacets and dataset.outputFacets.subset
    )
    condition = subset and (subset.inputCondition or subset.outputCondition)
    locations = condition.locations if condition else ()
    whole = {_PATH_PATTERNS.resolve(DatasetName(dataset.namespace, location)) for location in locations}
    return whole.pop() if len(whole) == 1 else DatasetName(dataset.namespace, dataset.name)


def _statistics(dataset: Dataset) -> Statistics | None:
    facet = (dataset.inputFacets and dataset.inputFacets.inputStatistics) or (
        dataset.outputFacets and dataset.outputFacets.outputStatistics
    )
    return Statistics(*structs.astuple(facet)) if facet else None


def _edges(facet: _ColumnLineageFacet) -> Iterator[Edge]:
    for column, made_from in facet.fields.items():
        for source in made_from.inputFields:
            for how in _transformations(source):
                yield column, DatasetName(source.namespace, source.name), source.field, how
    for source in facet.dataset or ():
        # The listener labels some of these DIRECT; what holds for the dataset as a whole is a filter, join or sort.
        for how in map(indirect, _transformations(source)):
            yield None, DatasetName(source.namespace, source.name), source.field, how


def _transformations(source: _InputField) -> list[Transformation]:
    return [
        Transformation(how.type, how.subtype or "", how.description or "", bool(how.masking))
        for how in source.transformations or ()
    ] or [NO_TRANSFORMATION]
