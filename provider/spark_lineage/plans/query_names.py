"""Finds the table that each column of a SQL query is of, where this is certain.

Import this module only for a query: it needs ``sqlglot``, which is an extra.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.query_dialects import Dialect
from spark_lineage.plans.scope import NOTHING, Sources

# Oracle writes t@link for a table of another database.
PLAIN = re.compile(r"[^\W\d][\w$#]*")


@dataclass
class Relation:
    """The columns of a table, a subquery or a common table expression, in order, with what they are made from.

    A column whose name the database makes up has None. ``rest`` are tables that have further columns here, under
    their own names; None stands for columns of which nothing is known. ``deciding`` decided on the rows, ``order``
    would if an outer query took the first of them.
    """

    columns: list[tuple[str | None, Sources]] = field(default_factory=list)
    rest: list[DatasetName | None] = field(default_factory=list)
    deciding: Sources = NOTHING
    order: Sources = NOTHING

    @property
    def sources(self) -> Sources:
        """All that its known columns are made from."""
        return NOTHING.union(*(made for _, made in self.columns))


# A relation in FROM, with the names that columns may have it before them: an alias, or the parts of a table's name.
Source = tuple[tuple[str, ...], Relation]


@dataclass
class Common:
    """A common table expression, which is read when a query uses it; ``named`` are those that it may use itself."""

    node: exp.Expr
    outer: Level | None
    named: Mapping[str, Common]
    is_recursive: bool
    relation: Relation | None = None


@dataclass
class Level:
    """What names mean in one SELECT: its sources, the columns that USING merges, and the query around it.

    ``given`` are the columns that it gives out without aggregates, by their aliases, ``deciding`` what decides on rows.
    """

    outer: Level | None = None
    named: Mapping[str, Common] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    merged: list[tuple[str, Sources]] = field(default_factory=list)
    windows: dict[str, exp.Expr] = field(default_factory=dict)
    given: list[tuple[str, Sources]] = field(default_factory=list)
    deciding: Sources = NOTHING

    def outwards(self) -> Iterator[Level]:
        """Return this level and those around it."""
        level: Level | None = self
        while level is not None:
            yield level
            level = level.outer


class Names:
    """Resolves names in one dialect; ``unread`` lists what is not certain.

    ``proven`` are columns that the statement names together with their table.
    """

    def __init__(self, dialect: Dialect, proven: Iterable[tuple[DatasetName, str]]) -> None:
        self.dialect = dialect
        self.unread: dict[str, None] = {}
        self.proven = set(proven)

    def count(self, part: str) -> Sources:
        """Note what is not certain; it has no sources."""
        self.unread[part] = None
        return NOTHING

    def column(self, node: exp.Expr, level: Level) -> Sources:
        """Return what a column of an expression is made from."""
        if not isinstance(node.this, exp.Identifier):
            return self.count("a star in an expression")
        name = self.dialect.name(node.this)
        if not (node.this.args.get("quoted") or PLAIN.fullmatch(node.this.this)):
            return self.count(f"the word {name}")
        is_qualified = bool(node.args.get("table"))
        if self.dialect.is_value(node.this) and (not is_qualified or name.upper() in self.dialect.hidden):
            return NOTHING
        found = self._with_table(name, node, level) if is_qualified else self._without_table(name, level)
        return self.count(f"the table of {name}") if found is None else found

    def _with_table(self, name: str, node: exp.Expr, level: Level) -> Sources | None:
        source = self.qualified(node, level)
        if source is None:
            return None
        _, relation = source
        found = self.among(name, [source])
        if found is not None and len(relation.rest) == 1 and not self._is_given(name, relation):
            self.proven |= {(table, self.dialect.key(name)) for table in relation.rest if table is not None}
        return found

    def _without_table(self, name: str, level: Level) -> Sources | None:
        """Return the column of the innermost query that may have it, if it certainly has it."""
        outer: list[Level] = []
        for around in reversed(list(level.outwards())):
            outer.insert(0, around)
        for depth, around in enumerate(outer):
            merged = [made for known, made in around.merged if self._is_same(known, name)]
            if merged:
                return merged[-1]
            if any(self._may_have(name, relation) for _, relation in around.sources):
                is_sure = self._is_sure(name, around) or not any(
                    self._may_see(name, each) for each in outer[depth + 1 :]
                )
                is_row = self.dialect.has_rows_as_values and self._is_called(name, outer)
                return self.among(name, around.sources) if is_sure and not is_row else None
        return None

    def _is_called(self, name: str, levels: Iterable[Level]) -> bool:
        """Whether a table of a query has the name, so that it may stand for a row."""
        names = (names for each in levels for names, _ in each.sources if names)
        return any(self._is_same(last, name) for *_, last in names)

    def _is_sure(self, name: str, level: Level) -> bool:
        """Whether a source of a query certainly has a column."""
        tables = (table for _, relation in level.sources for table in relation.rest)
        is_proven = any((table, self.dialect.key(name)) in self.proven for table in tables)
        return is_proven or any(self._is_given(name, relation) for _, relation in level.sources)

    def _may_see(self, name: str, level: Level) -> bool:
        merged = any(self._is_same(known, name) for known, _ in level.merged)
        return merged or any(self._may_have(name, relation) for _, relation in level.sources)

    def _may_have(self, name: str, relation: Relation) -> bool:
        return bool(relation.rest) or any(known is None or self._is_same(known, name) for known, _ in relation.columns)

    def _is_given(self, name: str, relation: Relation) -> bool:
        return any(self._is_same(known, name) for known, _ in relation.columns)

    def _is_same(self, name: str | None, other: str) -> bool:
        return name is not None and self.dialect.key(name) == self.dialect.key(other)

    def among(self, name: str, sources: Sequence[Source]) -> Sources | None:
        """Return a column of some sources, None where it is not certain which it is.

        A database refuses a query in which several have it.
        """
        relations = [relation for _, relation in sources]
        given = [made for each in relations for known, made in each.columns if self._is_same(known, name)]
        if given:
            return given[0] if len(given) == 1 else None
        rest = [table for each in relations for table in each.rest]
        proven = [table for table in rest if table and (table, self.dialect.key(name)) in self.proven]
        if len(proven) == 1:
            rest = list(proven)
        elif any(known is None for each in relations for known, _ in each.columns):
            return None
        table = rest[0] if len(rest) == 1 else None
        return None if table is None else frozenset({(table, name, IDENTITY)})

    def qualified(self, node: exp.Expr, level: Level) -> Source | None:
        """Return the source that the names before a column mean, None where this is not certain."""
        parts = (node.args[key] for key in ("catalog", "db", "table") if node.args.get(key))
        names = tuple(self.dialect.key(self.dialect.name(part)) for part in parts)
        for around in level.outwards():
            found = [each for each in around.sources if each[0][-len(names) :] == names]
            if found:
                return found[0] if len(found) == 1 else None
        return None
