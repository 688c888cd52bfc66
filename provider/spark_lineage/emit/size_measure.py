"""How many bytes the facets of datasets take in an event, without building them over and over.

Bytes are those of openlineage-python's JSON (``Serde.to_json``: spaces after separators, all but ASCII escaped), never
fewer than those of our own. A column or an edge is built once for each distinct value; the rest is addition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii
from typing import Any

from msgspec import structs
from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet

from spark_lineage.emit.dataset_facets import facets_of_input, facets_of_output
from spark_lineage.emit.facets import PRODUCER
from spark_lineage.emit.run_event import input_datasets, output_datasets, plain
from spark_lineage.merge.lineage import (
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    TaskLineage,
    Transformation,
)
from spark_lineage.naming.dataset_name import DatasetName

_NAMELESS = DatasetName("", "")
_BRACKETS = 2
_COMMA = len(", ")
_COLUMN = len('"": {"inputFields": []}')
_DATASET_EDGES = len(', "dataset": []')


def json_bytes(value: Any) -> int:
    """The bytes of a facet, an event, or a dict of facets: the length of ``Serde.to_json``, in a sixth of its time."""
    return len(json.dumps(value, default=plain))


class FacetSizes:
    """Measures datasets, and remembers the columns and edges that it has seen."""

    def __init__(self) -> None:
        self._rests: dict[tuple[bool, DatasetLineage], tuple[int, int]] = {}
        self._fields: dict[SchemaField, int] = {}
        self._edges: dict[tuple[DatasetName, tuple[Transformation, ...]], int] = {}
        self._schema = json_bytes({"schema": SchemaDatasetFacet(fields=[], producer=PRODUCER)}) - _BRACKETS
        self._columns = (
            json_bytes({"columnLineage": ColumnLineageDatasetFacet(fields={}, dataset=None, producer=PRODUCER)})
            - _BRACKETS
        )

    def of_dataset(self, dataset: DatasetLineage, *, is_output: bool) -> int:
        """The bytes by which an event grows with the facets of the dataset, in its role."""
        rest = structs.replace(dataset, schema=(), column_lineage=None)
        size, count = self._of_rest(rest, is_output=is_output)
        large = [each for each in (self._of_schema(dataset.schema), self._of_columns(dataset.column_lineage)) if each]
        commas = max(count + len(large) - 1, 0) - max(count - 1, 0)
        return size + sum(large) + commas * _COMMA

    def of_column(self, column: str, edges: tuple[InputField, ...]) -> int:
        """The bytes of one column of the column lineage, with the comma before it."""
        return _COLUMN + _text(column) + self._of_edges(edges) + _COMMA

    def _of_rest(self, rest: DatasetLineage, *, is_output: bool) -> tuple[int, int]:
        known = self._rests.get((is_output, rest))
        if known is None:
            facets, others = _facets(rest, is_output=is_output)
            known = json_bytes(facets) + json_bytes(others) - 2 * _BRACKETS, len(facets)
            self._rests[is_output, rest] = known
        return known

    def _of_schema(self, fields: tuple[SchemaField, ...]) -> int:
        return self._schema + _listed(self._of_field(field) for field in fields) if fields else 0

    def _of_field(self, field: SchemaField) -> int:
        size = self._fields.get(field)
        if size is None:
            size = (
                json_bytes(facets_of_input(DatasetLineage(_NAMELESS, schema=(field,), has_data_source=False)))
                - _BRACKETS
                - self._schema
            )
            self._fields[field] = size
        return size

    def _of_columns(self, columns: ColumnLineage | None) -> int:
        if columns is None:
            return 0
        sizes = [self.of_column(name, edges) for name, edges in columns.fields if edges]
        if not sizes and not columns.dataset:
            return 0
        size = self._columns + max(sum(sizes) - _COMMA, 0)
        return size + _DATASET_EDGES + self._of_edges(columns.dataset) if columns.dataset else size

    def _of_edges(self, edges: tuple[InputField, ...]) -> int:
        return _listed(self._of_edge(edge.dataset, edge.transformations) + _text(edge.field) for edge in edges)

    def _of_edge(self, dataset: DatasetName, transformations: tuple[Transformation, ...]) -> int:
        size = self._edges.get((dataset, transformations))
        if size is None:
            one = ColumnLineage(dataset=(InputField(dataset, "", transformations),))
            facets = facets_of_output(DatasetLineage(_NAMELESS, column_lineage=one, has_data_source=False))
            size = json_bytes(facets) - _BRACKETS - self._columns - _DATASET_EDGES
            self._edges[dataset, transformations] = size
        return size


def _facets(dataset: DatasetLineage, *, is_output: bool) -> tuple[Any, Any]:
    if is_output:
        (wrote,) = output_datasets(TaskLineage("COMPLETE", outputs=(dataset,)))
        return wrote.facets, wrote.outputFacets
    (read,) = input_datasets(TaskLineage("COMPLETE", inputs=(dataset,)))
    return read.facets, read.inputFacets


def _listed(sizes: Iterable[int]) -> int:
    total = -_COMMA
    for size in sizes:
        total += size + _COMMA
    return max(total, 0)


def _text(text: str) -> int:
    return len(encode_basestring_ascii(text)) - _BRACKETS
