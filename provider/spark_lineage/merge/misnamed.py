"""Corrects what the listener names wrongly: tables of Derby, snapshots of Iceberg, aggregates that a source made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import structs

from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.observed import Edge, Observed, compose, keep_edges
from spark_lineage.merge.state import RunContent, RunState, with_contents
from spark_lineage.naming.identity import DatasetName

# The place of Derby's metastore below the working directory, whatever the URL of the database
# (io.openlineage.client.utils.jdbc.DerbyJdbcExtractor).
_DERBY = re.compile(r"file:.*/metastore_db", re.DOTALL)
_UNNAMED = "snapshot "
# Of a name that is one column in a function, perhaps in the quotes of the source.
_CALL = re.compile(r"(?P<function>\w+)\((?:DISTINCT )?(?P<quote>[\"`]?)(?P<column>.*)(?P=quote)\)", re.DOTALL)
_AGGREGATES = frozenset({"avg", "count", "max", "min", "sum"})
_AGGREGATED, _MADE = Transformation("DIRECT", "AGGREGATION"), Transformation("DIRECT", "TRANSFORMATION")


def without_derby(runs: Mapping[str, RunState]) -> tuple[Mapping[str, RunState], list[str]]:
    """Return runs without tables of Derby, and for each run the parts that are unread in their place.

    Those of all databases are in one namespace.
    """
    # Many runs share their content.
    contents = {id(run.content): run.content for run in runs.values()}
    tables = {
        key: {
            one.dataset.name for one in (*content.inputs, *content.outputs) if _DERBY.fullmatch(one.dataset.namespace)
        }
        for key, content in contents.items()
    }
    unread = [f"{name}: its database" for run in runs.values() for name in sorted(tables[id(run.content)])]
    return (with_contents(runs, _without_derby) if unread else runs), unread


def _without_derby(content: RunContent) -> RunContent:
    inputs, outputs = (
        tuple(
            keep_edges(one, lambda edge: not _DERBY.fullmatch(edge[1].namespace))
            for one in observed
            if not _DERBY.fullmatch(one.dataset.namespace)
        )
        for observed in (content.inputs, content.outputs)
    )
    return structs.replace(content, inputs=inputs, outputs=outputs)


def is_named(version: str) -> bool:
    """Whether a version is no stand-in for one of which the last digits are lost."""
    return not version.startswith(_UNNAMED)


def with_snapshots(runs: Mapping[str, RunState]) -> Mapping[str, RunState]:
    """Return runs whose inputs have the snapshots that Iceberg reports to have read as their versions.

    By time travel they are others than the versions that the listener gives. A report has a number whose last digits
    are lost. It is that of the only version of the table with these digits that the task names; else a text stands for
    it that is no version, so that the task has not written it.
    """
    if not any(read.scanned for run in runs.values() for read in run.content.inputs):
        return runs
    known: dict[tuple[DatasetName, float], set[str]] = {}
    for run in runs.values():
        for one in (*run.content.inputs, *run.content.outputs):
            for version in filter(str.isdecimal, one.versions):
                known.setdefault((one.dataset.whole, float(version)), set()).add(version)

    def read_in(read: Observed) -> Observed:
        versions: set[str] = set()
        for number in read.scanned:
            found = known.get((read.dataset.whole, number), set())
            versions |= found if len(found) == 1 else {f"{_UNNAMED}{number}"}
        return structs.replace(read, versions=frozenset(versions), scanned=frozenset()) if read.scanned else read

    return with_contents(runs, lambda content: structs.replace(content, inputs=tuple(map(read_in, content.inputs))))


def without_pushed(output: Observed, inputs: Iterable[Observed]) -> Observed:
    """Return an output whose edges name columns that its inputs have, by the schemas that are known.

    Where a database or Iceberg answers ``SELECT sum(cost)``, the relation has a column ``SUM(COST)``: it comes from
    that column, and an aggregate of all rows, or of more, from none that is known.
    """
    columns = {read.dataset: {field.name for field in read.schema} for read in inputs if read.schema}
    unknown = {edge for edge in output.edges if edge[1] in columns and edge[2] not in columns[edge[1]]}
    calls = {edge: match for edge in unknown if (match := _CALL.fullmatch(edge[2]))}
    if not calls:
        return output
    edges: set[Edge] = set(output.edges - calls.keys())
    for (target, source, _, how), match in calls.items():
        made = _AGGREGATED if match["function"].lower() in _AGGREGATES else _MADE
        if match["column"] in columns[source]:
            edges.add((target, source, match["column"], compose(how, made)))
    return structs.replace(output, edges=frozenset(edges))
