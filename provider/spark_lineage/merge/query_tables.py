"""Names the tables of queries that Spark has a database run, by the names that the listener or declarations have.

The reading of a query is taken in the dialect of the one database in whose namespace its tables are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from spark_lineage.merge.execution import DatabaseQuery, Execution, QueryReading
from spark_lineage.merge.observed import Edge, Observed, by_name, compose
from spark_lineage.merge.state import RunState
from spark_lineage.naming.identity import DatasetName, is_path_namespace

UNREAD_QUERY = "a query of a database: "
_QUOTES = str.maketrans("", "", '"`[]')
Names = Mapping[DatasetName, DatasetName]


class _Named(NamedTuple):
    """What a query reads, and the names of its tables; without ``names`` for all of them its database is not known."""

    reading: QueryReading
    names: Names

    @property
    def unread(self) -> list[str]:
        """What is not certain, or has no name."""
        nameless = [table.written for table in self.reading.tables if table.dataset not in self.names]
        if nameless:
            return [f"{name}: its database" for name in nameless]
        return [f"{UNREAD_QUERY}{part}" for part in self.reading.unread]


def with_queries(execution: Execution, listened: Sequence[Observed]) -> Execution:
    """Return an execution with the tables that its queries read, by the names that others have for them.

    What has no name there is counted; the plan was then not read as a whole.
    """
    if not execution.queries:
        return execution
    named = {query.dataset: _named(query, listened) for query in execution.queries}
    unread = {part: None for each in named.values() for part in each.unread}
    inputs = [read for read in execution.inputs if read.dataset not in named]
    inputs += [Observed(name) for each in named.values() for name in each.names.values()]
    outputs = tuple(
        structs.replace(output, edges=frozenset(_traced(output.edges, named))) for output in execution.outputs
    )
    return structs.replace(
        execution,
        inputs=by_name(inputs),
        outputs=outputs,
        is_whole=execution.is_whole and not unread,
        unread=(*execution.unread, *unread),
        queries=(),
    )


def without_functions(run: RunState, queries: Iterable[DatabaseQuery]) -> RunState:
    """Return a run without what the listener takes for tables and queries use as functions: ``SYSTEM_RANGE(1, 3)``."""
    readings = [reading for query in queries for reading in query.readings]
    tables = {table.written.casefold() for reading in readings for table in reading.tables}
    functions = {name for reading in readings for name in reading.functions} - tables
    if not functions:
        return run
    kept = tuple(
        read
        for read in run.content.inputs
        if is_path_namespace(read.dataset.namespace)
        or _plain(read.dataset.name).casefold().rpartition(".")[2] not in functions
    )
    return structs.replace(run, content=structs.replace(run.content, inputs=kept))


def _traced(edges: Iterable[Edge], named: Mapping[DatasetName, _Named]) -> Iterator[Edge]:
    """Return edges from the columns of queries as edges from those of their tables (M7)."""
    for edge in edges:
        column, source, result, how = edge
        if source not in named:
            yield edge
            continue
        reading, names = named[source]
        for given, table, field, made in reading.edges:
            if (given or "") == result and table in names:
                yield column, names[table], field, compose(how, made)


def _named(query: DatabaseQuery, listened: Sequence[Observed]) -> _Named:
    """Return the reading of a query for the one database that has all of its tables."""
    namespaces = {read.dataset.namespace for read in listened if not is_path_namespace(read.dataset.namespace)}
    found: list[_Named] = []
    for namespace in sorted(namespaces):
        reading = query.reading(namespace)
        names = _in_namespace(reading, namespace, listened)
        if names and len(names) == len(reading.tables):
            found.append(_Named(reading, names))
    if len(found) == 1:
        return found[0]
    return _Named(query.readings[-1], {})


def _in_namespace(
    reading: QueryReading, namespace: str, listened: Sequence[Observed]
) -> dict[DatasetName, DatasetName]:
    """Return the names of a query's tables in one database; a longer name of a table has the first choice."""
    free = {read.dataset for read in listened if read.dataset.namespace == namespace}
    names: dict[DatasetName, DatasetName] = {}
    prefixes: dict[int, set[str]] = {}
    for table in sorted(reading.tables, key=lambda each: (-each.written.count("."), each)):
        for written in dict.fromkeys((table.written, table.folded)):
            fitting = [name for name in free if f".{_plain(name.name)}".endswith(f".{written}")]
            if len(fitting) == 1:
                names[table.dataset] = fitting[0]
                free.discard(fitting[0])
                prefix = fitting[0].name[: len(fitting[0].name) - len(written)]
                prefixes.setdefault(written.count("."), set()).add(prefix)
                break
    for table in reading.tables:
        # A table that the listener overlooks is in the database of the others.
        before = prefixes.get(table.written.count("."), set())
        if table.dataset not in names and len(before) == 1:
            names[table.dataset] = DatasetName(namespace, f"{min(before)}{table.written}")
    return names


def _plain(name: str) -> str:
    return name.translate(_QUOTES)
