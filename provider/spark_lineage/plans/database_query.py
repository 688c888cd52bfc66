"""Reads the SQL that Spark has a database run: a JDBC option ``query``, or a ``dbtable`` that is more than a name.

A plan names no database, since Spark redacts its URL. So each query is read in each dialect, and the merge, which knows
the database by its tables, takes the reading in that one's. ``sqlglot`` parses; it is an extra, imported with the first
query. What is not certain has no sources, and is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from spark_lineage.merge.execution import DatabaseQuery, QueryReading, QueryTable, query_dataset, query_of
from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.merge.observed import Edge, Observed
from spark_lineage.plans.query_dialects import DIALECTS, Dialect
from spark_lineage.plans.scope import Sources

if TYPE_CHECKING:
    from spark_lineage.plans.query_statement import Statement

NOT_INSTALLED = "sqlglot is not installed"
UNPARSED = "its SQL"
REDACTED = "*********(redacted)"
IN_NO_DIALECT = "its SQL, in an unknown dialect"
TOO_LONG = "its SQL, which is too long"
# The name of a table, whose parts may be in quotes.
_PART = r'(?:[^\s"`\[\](),;.]+|"(?:[^"]|"")+"|`(?:[^`]|``)+`|\[[^\]]+\])'
_NAME = re.compile(rf"\s*{_PART}(?:\.{_PART})*\s*")
_ALL_OF = "SELECT * FROM"
_SELECTING = re.compile(r"\s*SELECT\b", re.IGNORECASE)
# Parsing takes a second for some 100,000 characters.
_MAX_LENGTH = 50_000
_CACHED = 200


def is_query(table: str) -> bool:
    """Whether what a plan says that it reads of a database is more than the name of a table."""
    return _NAME.fullmatch(table) is None


def statement_of(table: str, external: str = "") -> str:
    """Return the statement that reads a ``dbtable``; ``external`` is that which Spark prints from 4.0 on, if it does.

    Only the latter has what the option ``prepareQuery`` puts in front.
    """
    return external if external and not _SELECTING.match(external) else f"{_ALL_OF} {table}"


def queries_among(inputs: Iterable[Observed]) -> tuple[DatabaseQuery, ...]:
    """Return what the queries among the inputs of an execution may mean."""
    return tuple(read_database_query(*query) for read in inputs if (query := query_of(read.dataset)))


class DialectReading(NamedTuple):
    """A reading, and whether just its columns are in the result, and whether it holds in dialects like this one too."""

    reading: QueryReading
    is_exact: bool = False
    is_portable: bool = False


@lru_cache(maxsize=_CACHED)
def read_database_query(sql: str, columns: tuple[str, ...]) -> DatabaseQuery:
    """Return what a statement reads, in each dialect.

    :param columns: the names of the columns that Spark reads of its result, in the order of the result; it may read
        less than all
    """
    found = [read_in_dialect(sql, dialect, columns) for dialect in DIALECTS]
    readings = [each.reading for each in found]
    # The names of the result's columns show how the database folds names.
    likely = [each for each in found if each.is_exact and not each.reading.unread] or found
    contents = {(each.reading.tables, each.reading.edges, each.reading.unread) for each in likely}
    if len(contents) == 1 and all(each.is_portable for each in likely):
        other = QueryReading((), *contents.pop())
    else:
        tables = set(likely[0].reading.tables).intersection(*(each.reading.tables for each in likely))
        reasons = {each.reading.unread for each in likely}
        unread = reasons.pop() if len(reasons) == 1 else ()
        other = QueryReading((), tuple(sorted(tables)), unread=unread or (IN_NO_DIALECT,))
    return DatabaseQuery(query_dataset(sql, columns), (*readings, other))


def read_in_dialect(sql: str, dialect: Dialect, columns: Sequence[str]) -> DialectReading:
    """Return what a statement reads in one dialect; what no parser reads is unread, and raises nothing."""
    if find_spec("sqlglot") is None:
        return DialectReading(QueryReading(dialect.schemes, unread=(NOT_INSTALLED,)))
    if len(sql) > _MAX_LENGTH:
        return DialectReading(QueryReading(dialect.schemes, unread=(TOO_LONG,)))
    if REDACTED in sql:
        return DialectReading(QueryReading(dialect.schemes, unread=(UNPARSED,)))
    usual = _read(sql, dialect, columns)
    if usual.is_exact:
        return usual
    # Databases may be set up to fold names in another way.
    others = (_read(sql, variant, columns) for variant in dialect.variants)
    return next((other for other in others if other.is_exact), usual)


def _read(sql: str, dialect: Dialect, columns: Sequence[str]) -> DialectReading:
    from spark_lineage.plans.query_statement import read_statement

    try:
        statement = read_statement(sql, dialect)
    except Exception:
        # sqlglot raises errors of its own, and of Python where a statement is nested too deeply.
        return DialectReading(QueryReading(dialect.schemes, unread=(UNPARSED,)))
    edges: set[Edge] = {(None, *source) for source in statement.relation.deciding}
    unread = list(statement.unread)
    found, is_exact = _result(statement, columns)
    for column, made in found.items():
        if made is None:
            unread.append(f"its column {column}")
        else:
            edges.update((column, *source) for source in made)
    text = sql.casefold()
    strange = {edge for edge in edges if not _stands(edge[2], text) and edge[2] not in columns}
    if strange:
        unread.append(UNPARSED)
    tables = tuple(sorted(QueryTable(table.name, folded) for table, folded in statement.tables.items()))
    given = frozenset(edges - strange), tuple(dict.fromkeys(unread)), statement.functions
    reading = QueryReading(dialect.schemes, tables, *given)
    return DialectReading(reading, is_exact, not statement.reuses_alias)


def _result(statement: Statement, columns: Sequence[str]) -> tuple[dict[str, Sources | None], bool]:
    """Return what each column of the result is made from, None where this is not certain; and whether names are exact.

    A column that no name fits is of the one table of which the query gives out all, or an expression without an alias.
    """
    relation = statement.relation
    found: dict[str, Sources | None] = {}
    exact = True
    for column in columns:
        for key in (str, str.casefold):
            named = [made for name, made in relation.columns if name is not None and key(name) == key(column)]
            if named:
                found[column] = named[0] if len(named) == 1 else None
                exact &= key is str
                break
    left = [column for column in columns if column not in found]
    made_up = [made for name, made in relation.columns if name is None]
    if left and not relation.rest and len(made_up) == len(left):
        found.update(zip(left, made_up, strict=True))
    elif left and not made_up and len(relation.rest) == 1 and relation.rest[0] is not None:
        found.update((column, frozenset({(relation.rest[0], column, IDENTITY)})) for column in left)
    else:
        found.update(dict.fromkeys(left))
        exact &= not left
    return found, exact


def _stands(name: str, text: str) -> bool:
    """Whether a name stands in a statement."""
    name = name.casefold()
    return any(name.replace(quote, 2 * quote) in text for quote in ('"', "`", "]"))
