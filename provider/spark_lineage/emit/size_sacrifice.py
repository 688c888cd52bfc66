"""What an event over the size limit gives up, detail by detail, in the order of ``ORDER`` (M12).

What can be read elsewhere goes first: edges that inputs and outputs imply, texts, schemas of what was only read, where
a table is stored. Then goes what says how a column was made, then the edges between columns, from the vague to the
exact, the edges between datasets, what was counted of inputs, and last where datasets are. Names, lifecycle, and what
was counted of outputs are never given up.

An edge and its columns go together: Marquez shows a column edge only where both schemas have the column, so a schema
keeps the columns that an edge still there refers to. An output loses its edges of one kind all at once, because a part
of them looks like the whole; only of the last one that loses direct edges are as many columns kept as fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
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

Edges = tuple[InputField, ...]

_NOTHING: frozenset[str] = frozenset()


class DatasetStep(NamedTuple):
    """A detail of datasets, given up one dataset after the other; ``without`` gives the dataset that lacks it."""

    detail: str
    without: Callable[[DatasetLineage, References], DatasetLineage]
    is_for_outputs: bool = True
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
    named: defaultdict[DatasetName, set[str]] = defaultdict(set)
    for output in lineage.outputs:
        if output.column_lineage is None:
            continue
        columns = output.column_lineage
        named[output.dataset].update(name for name, edges in columns.fields if edges)
        for edge in chain(columns.dataset, *(edges for _, edges in columns.fields)):
            named[edge.dataset].add(edge.field)
    return {dataset: _with_parents(fields) for dataset, fields in named.items()}


def without_columns(dataset: DatasetLineage, names: set[str]) -> DatasetLineage:
    """Return the dataset without the column lineage of these columns."""
    return _with_column_edges(dataset, lambda column, edges: () if column in names else edges)


def _with_parents(fields: set[str]) -> frozenset[str]:
    found = set(fields)
    for field in fields:
        parent = field
        while dot := parent.rfind(".") + 1:
            found.add(parent[:dot])
            parent = parent[: dot - 1]
            found.add(parent)
    return frozenset(found)


def _without(**empty: Any) -> Callable[[DatasetLineage, References], DatasetLineage]:
    """Give up fields of the dataset as a whole: each gets the value that stands for nothing."""
    return lambda dataset, _: structs.replace(dataset, **empty)


def _without_descriptions(dataset: DatasetLineage, _: References) -> DatasetLineage:
    return structs.replace(
        _with_transformations(
            dataset, lambda each: structs.replace(each, description="") if each.description else each
        ),
        schema=tuple(_undescribed(field) for field in dataset.schema),
    )


def _undescribed(field: SchemaField) -> SchemaField:
    return structs.replace(field, description=None, fields=tuple(_undescribed(each) for each in field.fields))


def _without_nested_fields(dataset: DatasetLineage, named: References) -> DatasetLineage:
    here = named.get(dataset.dataset, _NOTHING)
    return structs.replace(
        dataset,
        schema=tuple(
            structs.replace(field, fields=()) if field.fields and f"{field.name}." not in here else field
            for field in dataset.schema
        ),
    )


def _without_unused_schema(dataset: DatasetLineage, named: References) -> DatasetLineage:
    return structs.replace(dataset, schema=()) if dataset.dataset not in named else dataset


def _without_unused_columns(dataset: DatasetLineage, named: References) -> DatasetLineage:
    here = named.get(dataset.dataset, _NOTHING)
    return structs.replace(dataset, schema=tuple(field for field in dataset.schema if field.name in here))


def _without_repeated_edges(dataset: DatasetLineage, _: References) -> DatasetLineage:
    of_dataset = dataset.column_lineage.dataset if dataset.column_lineage else ()
    kinds = {(edge.dataset, edge.field): _kinds(edge) for edge in of_dataset}
    return _with_column_edges(
        dataset,
        lambda _, edges: tuple(
            edge
            for edge in edges
            if not (_is_indirect(edge) and _kinds(edge) <= kinds.get((edge.dataset, edge.field), set()))
        ),
    )


def _without_subtypes(dataset: DatasetLineage, _: References) -> DatasetLineage:
    return _with_transformations(dataset, lambda each: Transformation(each.type, masking=each.masking))


def _without_indirect_column_edges(dataset: DatasetLineage, _: References) -> DatasetLineage:
    return _with_column_edges(dataset, lambda _, edges: tuple(edge for edge in edges if not _is_indirect(edge)))


def _without_dataset_edges(dataset: DatasetLineage, _: References) -> DatasetLineage:
    columns = dataset.column_lineage
    return dataset if columns is None else _with_columns(dataset, columns.fields, ())


def _without_obvious_edges(lineage: TaskLineage) -> TaskLineage:
    inputs = {each.dataset for each in lineage.inputs}
    is_obvious = all(set(output.fed_by) == inputs for output in lineage.outputs)
    return _without_exact_edges(lineage) if is_obvious else lineage


def _without_exact_edges(lineage: TaskLineage) -> TaskLineage:
    # All at once: an output that is left out, or that has no sources in the facet, would look as if nothing fed it.
    return structs.replace(lineage, outputs=tuple(structs.replace(output, fed_by=()) for output in lineage.outputs))


def _without_catalog_schemas(lineage: TaskLineage) -> TaskLineage:
    return structs.replace(
        lineage,
        catalog_changes=tuple(structs.replace(each, schema=(), properties=()) for each in lineage.catalog_changes),
    )


def _is_indirect(edge: InputField) -> bool:
    return bool(edge.transformations) and all(each.type == "INDIRECT" for each in edge.transformations)


def _kinds(edge: InputField) -> set[tuple[str, bool]]:
    return {(each.subtype, each.masking) for each in edge.transformations}


def _with_column_edges(dataset: DatasetLineage, keep: Callable[[str, Edges], Edges]) -> DatasetLineage:
    columns = dataset.column_lineage
    if columns is None:
        return dataset
    return _with_columns(dataset, ((name, keep(name, edges)) for name, edges in columns.fields), columns.dataset)


def _with_transformations(
    dataset: DatasetLineage, reduce: Callable[[Transformation], Transformation]
) -> DatasetLineage:
    columns = dataset.column_lineage
    if columns is None:
        return dataset

    def reduced(edges: Edges) -> Edges:
        return tuple(
            InputField(edge.dataset, edge.field, tuple(sorted({reduce(each) for each in edge.transformations})))
            for edge in edges
        )

    return _with_columns(dataset, ((name, reduced(edges)) for name, edges in columns.fields), reduced(columns.dataset))


def _with_columns(dataset: DatasetLineage, fields: Iterable[tuple[str, Edges]], of_dataset: Edges) -> DatasetLineage:
    kept = tuple((name, edges) for name, edges in fields if edges)
    return structs.replace(dataset, column_lineage=ColumnLineage(kept, of_dataset))


_UNUSED_COLUMNS = DatasetStep("unusedColumns", _without_unused_columns, is_for_outputs=False, is_by_reference=True)

ORDER: tuple[DatasetStep | TaskStep, ...] = (
    TaskStep("exactEdges", _without_obvious_edges, attrgetter("outputs")),
    DatasetStep("descriptions", _without_descriptions),
    TaskStep("catalogSchemas", _without_catalog_schemas, attrgetter("catalog_changes")),
    DatasetStep("nestedFields", _without_nested_fields, is_by_reference=True),
    DatasetStep("unusedSchemas", _without_unused_schema, is_for_outputs=False, is_by_reference=True),
    DatasetStep("storage", _without(storage=None, catalog=None, version=None)),
    DatasetStep("repeatedIndirectEdges", _without_repeated_edges),
    DatasetStep("transformationSubtypes", _without_subtypes),
    _UNUSED_COLUMNS,
    DatasetStep("indirectColumnEdges", _without_indirect_column_edges),
    _UNUSED_COLUMNS,
    DatasetStep("indirectDatasetEdges", _without_dataset_edges),
    _UNUSED_COLUMNS,
    DatasetStep("directColumnEdges", _without(column_lineage=None), is_by_column=True),
    DatasetStep("schemas", _without(schema=())),
    TaskStep("exactEdges", _without_exact_edges, attrgetter("outputs")),
    DatasetStep("symlinks", _without(symlinks=())),
    DatasetStep("inputStatistics", _without(statistics=None), is_for_outputs=False),
    DatasetStep("dataSources", _without(has_data_source=False)),
)
