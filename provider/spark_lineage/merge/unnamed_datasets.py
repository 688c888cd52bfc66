"""Names what a plan reads without saying where it is: relations of logical plans, and tables of databases.

Spark redacts the URL of a database, and prints of a logical relation its format and columns alone. The listener, which
holds the relation itself, names it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.observed import Observed, by_name, with_sources
from spark_lineage.naming.identity import DatasetName, is_path_namespace


def unnamed(name: str, columns: Iterable[str] = ()) -> DatasetName:
    """Return what stands for a dataset until the listener names it: a table's name, or the columns of a relation."""
    return DatasetName("", name or f"({', '.join(columns)})")


def with_names(execution: Execution, listened: tuple[Observed, ...]) -> Execution:
    """Return an execution with the names that the listener has for what its plan leaves unnamed.

    What fits none of the listener's inputs, or several, goes; the plan was then not read as a whole.
    """
    nameless = [one for one in execution.inputs if _is_unnamed(one.dataset)]
    if not nameless:
        return execution
    known = {one.dataset for one in execution.inputs}
    others = [one for one in listened if one.dataset not in known]
    names: dict[DatasetName, DatasetName] = {}
    for one in nameless:
        fitting = [other.dataset for other in others if _fits(one, other)]
        if len(fitting) == 1:
            names[one.dataset] = fitting[0]
    inputs = by_name(
        structs.replace(one, dataset=names.get(one.dataset, one.dataset), schema=())
        for one in execution.inputs
        if one.dataset in names or not _is_unnamed(one.dataset)
    )
    outputs = tuple(
        structs.replace(output, edges=frozenset(edge for edge in output.edges if not _is_unnamed(edge[1])))
        for output in (with_sources(output, names) for output in execution.outputs)
    )
    is_whole = execution.is_whole and all(one.dataset in names for one in nameless)
    return structs.replace(execution, inputs=inputs, outputs=outputs, is_whole=is_whole)


def _is_unnamed(name: DatasetName) -> bool:
    return not name.namespace


def _fits(one: Observed, other: Observed) -> bool:
    """Whether an input of the listener may be what a plan reads: by the name of a table, or else by its columns."""
    name = one.dataset.name
    if name.startswith("("):
        columns = {field.name for field in one.schema}
        return bool(columns) and columns <= {field.name for field in other.schema}
    parts, told = _parts(name), _parts(other.dataset.name)
    return not is_path_namespace(other.dataset.namespace) and told[-len(parts) :] == parts


def _parts(table: str) -> list[str]:
    return table.replace('"', "").replace("`", "").split(".")
