"""The simple model that the truth follows from: columns, frames and outputs, and the sources that each comes from.

A source is a column of a table that was there, such as ``orders.amount``. Nothing here knows how the merge works.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from operator import or_

from generator.names import parts

Sources = frozenset[str]
NONE: Sources = frozenset()
_ids = count(1)


@dataclass(frozen=True)
class Edges:
    """The sources that a column comes from, those that decide about it, and those that an event may name or not."""

    direct: Sources = NONE
    indirect: Sources = NONE
    may: Sources = NONE

    def __or__(self, other: Edges) -> Edges:
        """The edges of what is made from both."""
        return Edges(self.direct | other.direct, self.indirect | other.indirect, self.may | other.may)

    @property
    def deciding(self) -> Edges:
        """The edges of what this is a condition, key or order of."""
        return Edges(NONE, self.direct | self.indirect, self.may)

    @property
    def optional(self) -> Edges:
        """The same edges, where Spark removes the operation that made them."""
        return Edges(NONE, NONE, self.direct | self.indirect | self.may)

    @property
    def all(self) -> Sources:
        """Every source."""
        return self.direct | self.indirect | self.may


@dataclass(frozen=True)
class Column:
    """A column of a frame.

    ``is_plain`` is False where Spark could compute something made from it before it runs (a literal in a branch of a
    union or CASE). ``is_constant`` where it has no source at all. ``is_nullable`` is True only where Spark must take it
    to be nullable: ``coalesce`` and ``count`` of others are simplified. ``tokens`` name what Spark may remove
    (``Removable``) unless this is used.
    """

    type: str
    edges: Edges = Edges()
    fields: Mapping[str, tuple[str, Edges]] = field(default_factory=dict)
    is_plain: bool = True
    is_constant: bool = False
    is_nullable: bool = False
    tokens: frozenset[int] = frozenset()
    id: int = field(default_factory=lambda: next(_ids))


@dataclass(frozen=True)
class Removable:
    """An operation that Spark drops once no column with this token is used above it, if ``is_active``.

    An outer join whose other side is not used, and a grouping, are dropped below a DISTINCT, which makes them active.
    A scalar subquery, and an outer join that changes the number of rows in no case, are active at once.
    """

    token: int
    edges: Edges
    feeds: Sources = NONE
    is_active: bool = False


@dataclass(frozen=True)
class Frame:
    """What a step makes: columns, the edges of all rows (``*``), and the tables that it is fed by.

    ``order`` is a sort that something above may make superfluous. ``keys`` are sets of column ids that Spark may know
    to be unique: a DISTINCT over them is dropped. ``is_row`` says that there is at most one row: nothing sorts it.
    ``stored`` are those of the rows' edges that were of all rows when they were written: a value that is made of them
    has these of its own, or with all rows.
    """

    columns: Mapping[str, Column]
    rows: Edges = Edges()
    feeds: Sources = NONE
    may_feed: Sources = NONE
    order: Edges = Edges()
    keys: frozenset[frozenset[int]] = frozenset()
    removable: tuple[Removable, ...] = ()
    is_row: bool = False
    stored: Sources = NONE

    def __getitem__(self, name: str) -> Column:
        """The column of this name; ``column.field`` is a field of a struct.

        Spark takes a field of a struct that is made in the same plan straight from what it was made of; through a
        file or a cache all of the struct's columns are its sources.
        """
        if name in self.columns:
            return self.columns[name]
        whole, *part = parts(name)
        if not part:
            raise KeyError(name)
        column = self.columns[whole]
        kind, edges = column.fields[part[0]]
        edges |= Edges(may=column.edges.all - edges.all)
        return Column(kind, edges, is_plain=column.is_plain, tokens=column.tokens)

    def edges(self, names: Iterable[str]) -> Edges:
        """What these columns come from, together."""
        return union(self[name].edges for name in names)

    def tokens(self, names: Iterable[str]) -> frozenset[int]:
        """What may not be removed where these columns are used."""
        return frozenset().union(*(self[name].tokens for name in names))

    def decided_by(self, names: Iterable[str]) -> Frame:
        """These columns decide which rows there are."""
        names = list(names)
        used = self.tokens(names)
        kept = tuple(each for each in self.removable if each.token not in used)
        return replace(self, rows=self.rows | self.edges(names).deciding, removable=kept).unsure(names)

    def unsure(self, names: Iterable[str]) -> Frame:
        """Spark may know from a condition on these columns that they, and what is made from the same, are not null."""
        touched = self.edges(names).all
        columns = {
            name: replace(each, is_nullable=each.is_nullable and not each.edges.all & touched)
            for name, each in self.columns.items()
        }
        return replace(self, columns=columns)

    def anchored(self) -> Frame:
        """Whatever made these rows is needed: a limit or a sample picks some of them."""
        active = tuple(each for each in self.removable if each.is_active)
        return replace(self, removable=active, rows=self.rows | self.order, order=Edges())

    @property
    def needed(self) -> frozenset[int]:
        """The tokens of what made these rows: a column that depends on their number has them."""
        return frozenset(each.token for each in self.removable if not each.is_active)

    def unordered(self) -> Frame:
        """The order of these rows is of no consequence for what comes next, so Spark drops a sort."""
        return replace(self, rows=self.rows | self.order.optional, order=Edges())

    def deduplicated(self) -> Frame:
        """An aggregate comes next: an operation that does nothing but multiply rows may be dropped below it."""
        active = tuple(replace(each, is_active=True) for each in self.removable)
        return replace(self.unordered(), removable=active)

    def only(self, names: Iterable[str]) -> Frame:
        """These columns alone."""
        return replace(self, columns={name: self.columns[name] for name in names})

    def settled(self) -> Frame:
        """As it is written: what was dropped is optional now."""
        used = frozenset().union(*(each.tokens for each in self.columns.values()))
        gone = [each for each in self.removable if each.is_active and each.token not in used]
        lost, feeds = union(each.edges for each in gone).all, frozenset[str]().union(*(each.feeds for each in gone))
        rows = self.rows | self.order
        rows = Edges(rows.direct, rows.indirect - lost, rows.may | (rows.indirect & lost))
        return replace(
            self, rows=rows, order=Edges(), feeds=self.feeds - feeds, may_feed=self.may_feed | feeds, removable=()
        )


@dataclass(frozen=True)
class Output:
    """What a program leaves in one place."""

    columns: Mapping[str, Column]
    rows: Edges
    feeds: Sources
    may_feed: Sources
    form: str

    @classmethod
    def of(cls, frame: Frame, form: str) -> Output:
        """What writing the frame in a format leaves."""
        frame = frame.settled()
        return cls(frame.columns, frame.rows, frame.feeds, frame.may_feed - frame.feeds, form)

    def added(self, other: Output) -> Output:
        """What appending leaves; columns are matched by name."""
        columns = {
            name: replace(each, edges=each.edges | other.columns[name].edges) for name, each in self.columns.items()
        }
        feeds = self.feeds | other.feeds
        return Output(columns, self.rows | other.rows, feeds, (self.may_feed | other.may_feed) - feeds, self.form)

    def read(self) -> Frame:
        """The frame that reading it gives: Spark knows nothing of where it came from."""
        columns = {
            name: Column(each.type, each.edges, _fields(each), is_nullable=True) for name, each in self.columns.items()
        }
        return Frame(columns, self.rows, self.feeds, self.may_feed, stored=self.rows.all)


def union(edges: Iterable[Edges]) -> Edges:
    """All edges of several."""
    return reduce(or_, edges, Edges())


def new_token() -> int:
    """A token that no column has yet."""
    return next(_ids)


def _fields(column: Column) -> Mapping[str, tuple[str, Edges]]:
    """A column that is read has whole columns as sources, and so have its fields."""
    return {name: (kind, column.edges) for name, (kind, _) in column.fields.items()}
