"""What a task put into a dataset, and what from: the sum of its writes, now and at earlier times."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from spark_lineage.merge.lineage import Statistics, Transformation, Write
from spark_lineage.merge.observed import combine
from spark_lineage.merge.partitions import are_apart

if TYPE_CHECKING:
    from spark_lineage.merge.entity import Entity

# By output column (None: the dataset as a whole) what it was made from. A source is what an entity held before the
# task, rather than a name, for names change.
Source = tuple["Entity", str, Transformation]
Sources = dict[str | None, set[Source]]


class Content(Struct):
    """What writes put into a dataset, and what from; ``is_counted`` is false where a number is missing."""

    statistics: Statistics | None = None
    is_counted: bool = True
    sources: Sources = {}
    fed_by: set[Entity] = set()
    writes: tuple[Write, ...] = ()

    def sources_of(self, column: str) -> Iterable[Source]:
        """Return what a column was made from by the task; Spark's column names differ in case only by mistake."""
        if column in self.sources:
            return self.sources[column]
        folded = column.casefold() if self.sources else ""
        return next((found for name, found in self.sources.items() if name and name.casefold() == folded), ())

    def copy(self) -> Content:
        """Return the same, which further writes do not change."""
        return structs.replace(self, sources=dict(self.sources), fed_by=set(self.fed_by))

    def fill(self, outer: Content) -> None:
        """Fill what the inner run of a command left open with what the outer one has."""
        if self.statistics is None:
            self.statistics = outer.statistics
            self.is_counted = self.is_counted or outer.statistics is not None
        self.sources = self.sources or outer.sources
        self.fed_by = self.fed_by or outer.fed_by
        self.writes = outer.writes or self.writes

    def add(self, other: Content) -> None:
        """Add what a further write put in (M7, M9)."""
        self.statistics = combine(self.statistics, other.statistics, add)
        self.is_counted = self.is_counted and other.is_counted
        for column, sources in other.sources.items():
            self.sources[column] = self.sources[column] | sources if column in self.sources else sources
        self.fed_by |= other.fed_by
        self.writes = tuple(dict.fromkeys((*self.writes, *other.writes)))


class State(Struct, frozen=True):
    """What the task had put into a dataset at one time, by static partition, and what it had replaced.

    ``overwriting`` is what its last write put in, if that may have replaced all, as its condition is not known.
    """

    parts: dict[str, Content] = {}
    is_replaced: bool = False
    replaced_parts: frozenset[str] = frozenset()
    overwriting: Content | None = None

    def content_of(self, partition: str) -> Content:
        """Return what the task had put into a partition."""
        found = [part for key, part in self.parts.items() if not are_apart(key, partition)]
        if len(found) == 1:
            return found[0]
        content = Content(sources={}, fed_by=set())
        for part in found:
            content.add(part)
        return content


def is_more(found: Statistics | None, put_in: Statistics | None) -> bool | None:
    """Return whether more bytes and files were found than were put in, None where that is not known.

    The listener may have an estimate of the bytes that are read.
    """
    if found is None or put_in is None or found.size is None or put_in.size is None:
        return None
    return found.size > put_in.size and (found.file_count or float("inf")) > (put_in.file_count or 0)


def is_all(found: Statistics | None, put_in: Statistics | None) -> bool | None:
    """Return whether a write put in all of the bytes that were found, None where that is not known."""
    if found is None or put_in is None or found.size is None or put_in.size is None or found.size < put_in.size:
        return None
    return found.size == put_in.size
