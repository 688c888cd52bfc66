"""What events say about one dataset, as values that can be joined in any order.

``join`` is commutative, associative and idempotent: a choice between two facets never depends on which came first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from spark_lineage.merge.event import (
    ColumnLineageFacet,
    Dataset,
    FieldFacet,
    InputFieldFacet,
    StatisticsFacet,
)
from spark_lineage.merge.lineage import (
    Catalog,
    InputField,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    Transformation,
)
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.identity import DatasetName, is_path_namespace
from spark_lineage.naming.path_patterns import PathPatterns

_T = TypeVar("_T")

# One edge: the output column (None for the dataset as a whole) and what it was made from.
Edge = tuple[str | None, DatasetName, str, Transformation]

# What Iceberg finds rows again by is no column of the table (org.apache.iceberg.MetadataColumns).
_ICEBERG_COLUMNS = frozenset({"_file", "_pos", "_spec_id", "_partition", "_deleted"})
# The type of a column of JVM objects, as the plan over an RDD has them: no dataset has one (Catalyst's ObjectType).
_JVM_OBJECT = "object"

_PATH_PATTERNS = PathPatterns()
NO_TRANSFORMATION = Transformation("")


class Observed(Struct, frozen=True, gc=False):
    """One dataset as an input or an output of one run."""

    dataset: DatasetName
    symlinks: frozenset[Symlink] = frozenset()
    schema: tuple[SchemaField, ...] = ()
    storage: Storage | None = None
    catalog: Catalog | None = None
    version: str | None = None
    lifecycles: frozenset[str] = frozenset()
    previous_name: DatasetName | None = None
    edges: frozenset[Edge] = frozenset()
    statistics: Statistics | None = None

    @property
    def names(self) -> tuple[DatasetName, ...]:
        """All that it is called: its own name, then those that symlinks give it, sorted."""
        return self.dataset, *sorted(link.dataset for link in self.symlinks)

    @property
    def is_bare(self) -> bool:
        """Whether nothing but the name is known, as RDD runs give it."""
        return not (self.schema or self.symlinks or self.lifecycles)

    @property
    def is_empty(self) -> bool:
        """Whether a write of it wrote no data, as far as its run tells: DDL."""
        return self.statistics is None and not self.edges


def observe(datasets: Iterable[Dataset]) -> tuple[Observed, ...]:
    """Return the datasets of one event, one entry a name, sorted by name."""
    return by_name(_observe(dataset) for dataset in datasets)


def join(left: tuple[Observed, ...], right: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Return what two events of one run say together (M2)."""
    if not left or left is right:
        return right
    return by_name((*left, *right)) if right else left


def named(observed: tuple[Observed, ...], naming: Naming) -> tuple[Observed, ...]:
    """Return the same by the names that a naming has for them; what gets one name becomes one."""
    return by_name(_named(one, naming) for one in observed)


def with_sources(one: Observed, names: Mapping[DatasetName, DatasetName]) -> Observed:
    """Return a dataset whose columns come from others by the names that these have in ``names``, if any."""
    edges = frozenset((column, names.get(source, source), field, how) for column, source, field, how in one.edges)
    return structs.replace(one, edges=edges)


def _named(one: Observed, naming: Naming) -> Observed:
    previous = one.previous_name
    return structs.replace(
        one,
        dataset=naming.name(one.dataset.namespace, one.dataset.name),
        symlinks=frozenset(_named_symlink(link, naming) for link in one.symlinks),
        previous_name=None if previous is None else naming.name(previous.namespace, previous.name),
        edges=frozenset(
            (column, naming.name(source.namespace, source.name), field, how) for column, source, field, how in one.edges
        ),
    )


def _named_symlink(link: Symlink, naming: Naming) -> Symlink:
    if link.type == "TABLE" and is_path_namespace(link.namespace):
        # The warehouse's folder as a namespace: the name in it is that of a table, no path.
        return link
    name = naming.name(link.namespace, link.name)
    return Symlink(name.namespace, name.name, link.type)


def by_name(observed: Iterable[Observed]) -> tuple[Observed, ...]:
    """Return one entry a name, sorted by name."""
    found: dict[DatasetName, Observed] = {}
    for one in observed:
        known = found.get(one.dataset)
        found[one.dataset] = one if known is None else join_one(known, one)
    return tuple(found[name] for name in sorted(found))


def join_one(left: Observed, right: Observed) -> Observed:
    """Return what two observations of one dataset say together; of each number the greater (M9 within a run)."""
    return Observed(
        dataset=left.dataset,
        symlinks=left.symlinks | right.symlinks,
        schema=max(left.schema, right.schema, key=_fullness),
        storage=greater(left.storage, right.storage),
        catalog=greater(left.catalog, right.catalog),
        version=greater(left.version, right.version),
        lifecycles=left.lifecycles | right.lifecycles,
        previous_name=greater(left.previous_name, right.previous_name),
        edges=left.edges | right.edges,
        statistics=combine(left.statistics, right.statistics, max),
    )


def _fullness(schema: tuple[SchemaField, ...]) -> tuple[int, int, bytes]:
    # A declared column has a name only.
    return len(schema), sum(field.type is not None for field in schema), msgspec.json.encode(schema)


def greater(left: _T | None, right: _T | None) -> _T | None:
    """Return the one there is, or of two that differ always the same."""
    if left is None or left == right:
        return right
    return left if right is None else max(left, right, key=msgspec.json.encode)


def combine(left: Statistics | None, right: Statistics | None, of_two: Callable[[int, int], int]) -> Statistics | None:
    """Return ``of_two`` of each number that both have, else the one there is; a true 0 is a number, None is none."""
    if left is None or right is None:
        return right if left is None else left

    def number(one: int | None, other: int | None) -> int | None:
        if one is None or other is None:
            return other if one is None else one
        return of_two(one, other)

    return Statistics(
        number(left.row_count, right.row_count),
        number(left.size, right.size),
        number(left.file_count, right.file_count),
    )


def _name(dataset: Dataset) -> DatasetName:
    """The name of a dataset; the listener also cuts folders with a ``=`` that no engine writes for a partition."""
    read, written = dataset.inputFacets, dataset.outputFacets
    condition = read.subset.inputCondition if read and read.subset else None
    if condition is None and written and written.subset:
        condition = written.subset.outputCondition
    locations = condition.locations if condition else ()
    whole = {_PATH_PATTERNS.resolve(DatasetName(dataset.namespace, location)) for location in locations}
    return whole.pop() if len(whole) == 1 else DatasetName(dataset.namespace, dataset.name)


def _observe(dataset: Dataset) -> Observed:
    name = _name(dataset)
    statistics = _statistics(dataset)
    facets = dataset.facets
    if facets is None:
        return Observed(name, statistics=statistics)
    is_iceberg = facets.storage is not None and facets.storage.storageLayer == "iceberg"
    steering = _ICEBERG_COLUMNS if is_iceberg else frozenset()
    lifecycle = facets.lifecycleStateChange
    previous = lifecycle.previousIdentifier if lifecycle else None
    return Observed(
        dataset=name,
        symlinks=frozenset(Symlink(link.namespace, link.name, link.type) for link in facets.symlinks.identifiers)
        if facets.symlinks
        else frozenset(),
        schema=tuple(
            field for field in _schema(facets.schema.fields) if field.name not in steering and field.type != _JVM_OBJECT
        )
        if facets.schema
        else (),
        storage=Storage(facets.storage.storageLayer, facets.storage.fileFormat) if facets.storage else None,
        catalog=Catalog(
            facets.catalog.framework,
            facets.catalog.type,
            facets.catalog.name,
            facets.catalog.source,
            facets.catalog.metadataUri,
            facets.catalog.warehouseUri,
        )
        if facets.catalog
        else None,
        version=facets.version.datasetVersion if facets.version else None,
        lifecycles=frozenset((lifecycle.lifecycleStateChange,)) if lifecycle else frozenset(),
        previous_name=DatasetName(previous.namespace, previous.name) if previous else None,
        edges=frozenset(edge for edge in _edges(facets.columnLineage) if edge[2] not in steering)
        if facets.columnLineage
        else frozenset(),
        statistics=statistics,
    )


def _schema(fields: list[FieldFacet]) -> tuple[SchemaField, ...]:
    return tuple(SchemaField(field.name, field.type, field.description, _schema(field.fields)) for field in fields)


def _statistics(dataset: Dataset) -> Statistics | None:
    facet: StatisticsFacet | None = None
    if dataset.inputFacets:
        facet = dataset.inputFacets.inputStatistics
    if facet is None and dataset.outputFacets:
        facet = dataset.outputFacets.outputStatistics
    return Statistics(facet.rowCount, facet.size, facet.fileCount) if facet else None


def _edges(facet: ColumnLineageFacet) -> set[Edge]:
    edges: set[Edge] = set()
    for column, made_from in facet.fields.items():
        for source in made_from.inputFields:
            edges.update((column, *edge) for edge in _edge_ends(source))
    for source in facet.dataset or ():
        # The listener labels some of these DIRECT; what holds for the dataset as a whole is a filter, join or sort.
        edges.update(
            (None, name, field, Transformation("INDIRECT", how.subtype, how.description, how.masking))
            for name, field, how in _edge_ends(source)
        )
    return edges


def _edge_ends(source: InputFieldFacet) -> list[tuple[DatasetName, str, Transformation]]:
    name = DatasetName(source.namespace, source.name)
    hows = source.transformations or ()
    return [
        (name, source.field, Transformation(how.type, how.subtype or "", how.description or "", bool(how.masking)))
        for how in hows
    ] or [(name, source.field, NO_TRANSFORMATION)]


def input_fields(edges: Iterable[tuple[DatasetName, str, Transformation]]) -> tuple[InputField, ...]:
    """Group edges by the column that they come from, sorted."""
    hows: dict[tuple[DatasetName, str], set[Transformation]] = {}
    for name, field, how in edges:
        hows.setdefault((name, field), set()).add(how)
    return tuple(
        InputField(name, field, tuple(sorted(hows[name, field] - {NO_TRANSFORMATION}))) for name, field in sorted(hows)
    )
