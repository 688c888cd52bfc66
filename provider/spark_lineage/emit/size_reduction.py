"""What an event over the size limit drops, detail by detail, in the order of ``ORDER`` (M12).

Redundant detail goes first: edges that inputs and outputs imply, texts, schemas of what was only read, where
a table is stored. Then goes what says how a column was made, then the edges between columns, from the vague to the
exact, the edges between datasets, what was counted of inputs, and last where datasets are. Names, lifecycle, and what
was counted of outputs are never given up.

An edge and its columns go together: Marquez shows a column edge only where both schemas have the column, so a schema
keeps the columns that an edge still there refers to. An output loses its edges of one kind all at once, because a part
of them looks like the whole; only of the last one that loses direct edges are as many columns kept as fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import structs

from spark_lineage.merge.lineage import (
    CatalogChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    TaskLineage,
    Transformation,
)
from spark_lineage.naming.identity import DatasetName

# Columns that edges name, by dataset. A column below which one is named is there twice: "customer" and "customer.".
References = Mapping[DatasetName, frozenset[str]]
Without = Callable[[DatasetLineage, References], DatasetLineage]
Transformations = tuple[Transformation, ...]

_NOTHING: frozenset[Any] = frozenset()


class DatasetStep(NamedTuple):
    """A detail of datasets, given up one dataset after the other; ``without`` gives the dataset that lacks it."""

    detail: str
    without: Without
    is_for_inputs_only: bool = False
    is_by_reference: bool = False
    is_by_column: bool = False


class TaskStep(NamedTuple):
    """A detail of the task as a whole, given up at once; ``without`` gives the lineage that lacks it.

    ``about`` gives the outputs or catalog changes that it says something about.
    """

    detail: str
    without: Callable[[TaskLineage], TaskLineage]
    about: Callable[[TaskLineage], tuple[DatasetLineage | CatalogChange, ...]]


def references(lineage: TaskLineage) -> References:
    """Return the columns that the column lineage names, of inputs and of outputs, with the columns that they lie in."""
    found: defaultdict[DatasetName, set[str]] = defaultdict(set)
    for output in lineage.outputs:
        if output.column_lineage is not None:
            columns = output.column_lineage
            found[output.dataset].update(name for name, edges in columns.fields if edges)
            for edge in chain(columns.dataset, *(edges for _, edges in columns.fields)):
                found[edge.dataset].add(edge.field)
    return {dataset: _with_parents(fields) for dataset, fields in found.items()}


def without_columns(dataset: DatasetLineage, names: set[str]) -> DatasetLineage:
    """Return the dataset without the column lineage of these columns."""
    columns = dataset.column_lineage or ColumnLineage()
    fields = tuple((name, edges) for name, edges in columns.fields if edges and name not in names)
    return structs.replace(dataset, column_lineage=ColumnLineage(fields, columns.dataset))


def _with_parents(fields: set[str]) -> frozenset[str]:
    found = set(fields)
    for parent in filter(lambda field: "." in field, fields):
        while dot := parent.rfind(".") + 1:
            found.add(parent[:dot])
            parent = parent[: dot - 1]  # noqa: PLW2901
            found.add(parent)
    return frozenset(found)


def _without(**empty: Any) -> Without:
    """Give up fields of the dataset as a whole: each gets the value that stands for nothing."""
    return lambda dataset, _: structs.replace(dataset, **empty)


def _of_columns(reduce: Callable[[ColumnLineage], ColumnLineage]) -> Without:
    """Give up a part of the column lineage, and the columns that have no edge then."""

    def without(dataset: DatasetLineage, _: References) -> DatasetLineage:
        if dataset.column_lineage is None:
            return dataset
        columns = reduce(dataset.column_lineage)
        fields = tuple((name, edges) for name, edges in columns.fields if edges)
        return structs.replace(dataset, column_lineage=ColumnLineage(fields, columns.dataset))

    return without


def _of_column_edges(columns: ColumnLineage, is_kept: Callable[[InputField], bool]) -> ColumnLineage:
    fields = tuple((name, tuple(filter(is_kept, edges))) for name, edges in columns.fields)
    return ColumnLineage(fields, columns.dataset)


def _with_transformations(reduce: Callable[[Transformation], Transformation]) -> Without:
    """Say less of how columns were made; what is the same then is said once."""

    @lru_cache
    def reduced(transformations: Transformations) -> Transformations:
        return tuple(sorted(set(map(reduce, transformations))))

    def of(edges: tuple[InputField, ...]) -> tuple[InputField, ...]:
        return tuple(InputField(edge.dataset, edge.field, reduced(edge.transformations)) for edge in edges)

    return _of_columns(
        lambda all_: ColumnLineage(tuple((name, of(each)) for name, each in all_.fields), of(all_.dataset))
    )


_without_described_edges = _with_transformations(lambda each: structs.replace(each, description=""))


def _without_descriptions(dataset: DatasetLineage, used: References) -> DatasetLineage:
    schema = tuple(map(_undescribed, dataset.schema))
    return structs.replace(_without_described_edges(dataset, used), schema=schema)


def _undescribed(field: SchemaField) -> SchemaField:
    return structs.replace(field, description=None, fields=tuple(map(_undescribed, field.fields)))


def _without_nested_fields(dataset: DatasetLineage, used: References) -> DatasetLineage:
    here = used.get(dataset.dataset, _NOTHING)
    flat = (field if f"{field.name}." in here else structs.replace(field, fields=()) for field in dataset.schema)
    return structs.replace(dataset, schema=tuple(flat))


def _without_unused_columns(dataset: DatasetLineage, used: References) -> DatasetLineage:
    here = used.get(dataset.dataset, _NOTHING)
    return structs.replace(dataset, schema=tuple(field for field in dataset.schema if field.name in here))


def _without_repeated_edges(columns: ColumnLineage) -> ColumnLineage:
    of_dataset = {(edge.dataset, edge.field): _kinds(edge.transformations) for edge in columns.dataset}

    def is_kept(edge: InputField) -> bool:
        kinds = edge.transformations
        return not (_is_indirect(kinds) and _kinds(kinds) <= of_dataset.get((edge.dataset, edge.field), _NOTHING))

    return _of_column_edges(columns, is_kept)


def _without_obvious_edges(lineage: TaskLineage) -> TaskLineage:
    inputs = {each.dataset for each in lineage.inputs}
    is_obvious = all(set(output.fed_by) == inputs for output in lineage.outputs)
    return _without_exact_edges(lineage) if is_obvious else lineage


def _without_exact_edges(lineage: TaskLineage) -> TaskLineage:
    # All at once: an output that is left out, or that has no sources in the facet, would look as if nothing fed it.
    return structs.replace(lineage, outputs=tuple(structs.replace(output, fed_by=()) for output in lineage.outputs))


def _without_catalog_schemas(lineage: TaskLineage) -> TaskLineage:
    changes = (structs.replace(each, schema=(), properties=()) for each in lineage.catalog_changes)
    return structs.replace(lineage, catalog_changes=tuple(changes))


def _without_others(lineage: TaskLineage) -> TaskLineage:
    inputs, outputs = (
        tuple(structs.replace(each, foreign=(), foreign_of_use=()) for each in side)
        for side in (lineage.inputs, lineage.outputs)
    )
    return structs.replace(lineage, inputs=inputs, outputs=outputs, foreign=(), foreign_of_job=())


def _with_others(lineage: TaskLineage) -> tuple[DatasetLineage, ...]:
    return tuple(each for each in (*lineage.inputs, *lineage.outputs) if each.foreign or each.foreign_of_use)


# A hundred thousand edges have the same few transformations.
@lru_cache
def _is_indirect(transformations: Transformations) -> bool:
    return bool(transformations) and all(each.type == "INDIRECT" for each in transformations)


@lru_cache
def _kinds(transformations: Transformations) -> frozenset[tuple[str, bool]]:
    return frozenset((each.subtype, each.masking) for each in transformations)


_UNUSED_COLUMNS = DatasetStep("unusedColumns", _without_unused_columns, is_for_inputs_only=True, is_by_reference=True)
_WITHOUT_SUBTYPES = _with_transformations(lambda each: Transformation(each.type, masking=each.masking))
_WITHOUT_INDIRECT = _of_columns(
    lambda columns: _of_column_edges(columns, lambda edge: not _is_indirect(edge.transformations))
)

ORDER: tuple[DatasetStep | TaskStep, ...] = (
    TaskStep("exactEdges", _without_obvious_edges, attrgetter("outputs")),
    DatasetStep("descriptions", _without_descriptions),
    TaskStep("catalogSchemas", _without_catalog_schemas, attrgetter("catalog_changes")),
    TaskStep("otherFacets", _without_others, _with_others),
    DatasetStep("nestedFields", _without_nested_fields, is_by_reference=True),
    DatasetStep(
        "unusedSchemas",
        lambda dataset, used: dataset if dataset.dataset in used else structs.replace(dataset, schema=()),
        is_for_inputs_only=True,
        is_by_reference=True,
    ),
    DatasetStep("storage", _without(storage=None, catalog=None, versions=())),
    DatasetStep("repeatedIndirectEdges", _of_columns(_without_repeated_edges)),
    DatasetStep("transformationSubtypes", _WITHOUT_SUBTYPES),
    _UNUSED_COLUMNS,
    DatasetStep("indirectColumnEdges", _WITHOUT_INDIRECT),
    _UNUSED_COLUMNS,
    DatasetStep("indirectDatasetEdges", _of_columns(lambda columns: ColumnLineage(columns.fields))),
    _UNUSED_COLUMNS,
    DatasetStep("directColumnEdges", _without(column_lineage=None), is_by_column=True),
    DatasetStep("schemas", _without(schema=())),
    TaskStep("exactEdges", _without_exact_edges, attrgetter("outputs")),
    DatasetStep("symlinks", _without(symlinks=())),
    DatasetStep("inputStatistics", _without(statistics=None), is_for_inputs_only=True),
    DatasetStep("dataSources", _without(has_data_source=False)),
)
