"""Corrects what the listener names columns of a source that are none: aggregates that the source computed itself.

Where a database or Iceberg answers ``SELECT sum(cost)``, the relation has a column ``SUM(COST)`` (pushed aggregates).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.observed import Edge, Observed, compose

# Of a name that is one column in a function, perhaps in the quotes of the source.
_CALL = re.compile(r"(?P<function>\w+)\((?:DISTINCT )?(?P<quote>[\"`]?)(?P<column>.*)(?P=quote)\)", re.DOTALL)
_AGGREGATES = frozenset({"avg", "count", "max", "min", "sum"})


def without_pushed(output: Observed, inputs: Iterable[Observed]) -> Observed:
    """Return an output whose edges name columns that its inputs have, by the schemas that are known.

    An aggregate of a column comes from that column, and one of all rows, or of more, from none that is known.
    """
    columns = {read.dataset: {field.name for field in read.schema} for read in inputs if read.schema}
    edges = frozenset(proper for edge in output.edges if (proper := _proper(edge, columns.get(edge[1]))))
    return output if edges == output.edges else structs.replace(output, edges=edges)


def _proper(edge: Edge, columns: set[str] | None) -> Edge | None:
    target, source, field, how = edge
    match = None if columns is None or field in columns else _CALL.fullmatch(field)
    if match is None or columns is None:
        return edge
    if match["column"] not in columns:
        return None
    is_aggregate = match["function"].lower() in _AGGREGATES
    return target, source, match["column"], compose(how, _AGGREGATED if is_aggregate else _MADE)


_AGGREGATED, _MADE = Transformation("DIRECT", "AGGREGATION"), Transformation("DIRECT", "TRANSFORMATION")
