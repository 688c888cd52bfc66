"""Parses a statement of SQL with ``sqlglot``, and reads it.

Import this module only for a query: ``sqlglot`` is an extra.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import NamedTuple

import sqlglot

from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.query_clauses import Clauses
from spark_lineage.plans.query_dialects import Dialect
from spark_lineage.plans.query_names import Relation


class Statement(NamedTuple):
    """What a statement gives out, the tables that it reads, with their names in the database, and what is uncertain.

    ``functions`` are the names of those that stand as tables.

    ``reuses_alias``: some databases would take a column in it for an alias that stands before it.
    """

    relation: Relation
    tables: Mapping[DatasetName, str]
    unread: tuple[str, ...]
    reuses_alias: bool
    functions: frozenset[str]


def read_statement(sql: str, dialect: Dialect) -> Statement:
    """Read a query.

    :raises Exception: when it is no query of the dialect, or not one that sqlglot can parse
    """
    with _silenced():
        (node,) = sqlglot.parse(sql, read=dialect.parser)
    if node is None:
        raise ValueError("no statement")
    clauses = Clauses(dialect, sql)
    relation = clauses.query(node)
    if clauses.unread and clauses.proven:
        # A column that stands somewhere with its table is known to be one of it everywhere.
        clauses = Clauses(dialect, sql, clauses.proven)
        relation = clauses.query(node)
    return Statement(
        relation, clauses.tables, tuple(clauses.unread), clauses.reuses_alias, frozenset(clauses.functions)
    )


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep sqlglot's warnings out of the log: they quote the statement, which may hold a secret."""
    logger, thread = logging.getLogger("sqlglot"), get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)
