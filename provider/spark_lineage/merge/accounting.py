"""Compares the leaves and writes of a plan with the datasets of its run; what none of these stands for is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import is_path_namespace

_PARTS = re.compile(r"[./]+")


class PlanPart(Struct, frozen=True, order=True, gc=False):
    """A leaf of a plan that reads a dataset, or a node that writes one (``is_write``).

    ``name`` is what a count calls it. ``sources`` are the paths or the table that it reads, as the plan has them, of
    ``count`` in all; of a leaf without sources only the node is known, so that any dataset that no other leaf reads may
    be its own, and with a ``count`` of 0 any dataset at all. ``is_nameless``: it is known that no dataset stands for it.
    """

    name: str
    sources: tuple[str, ...] = ()
    count: int = 1
    is_write: bool = False
    is_nameless: bool = False

    @property
    def is_of_any(self) -> bool:
        """Whether it reads a dataset of its own, of which nothing is known."""
        return bool(self.count) and not (self.sources or self.is_write or self.is_nameless)


def left_over(parts: Iterable[PlanPart], read: Sequence[Observed], written: Sequence[Observed]) -> list[PlanPart]:
    """Return the parts that no dataset stands for."""
    parts = list(parts)
    claimed = {one.dataset for one in read for part in parts if any(_is_at(source, one) for source in part.sources)}
    free = sum(one.dataset not in claimed for one in read)
    left = []
    for part in parts:
        if part.is_nameless:
            is_named = False
        elif part.is_write:
            is_named = bool(written)
        elif part.sources:
            is_named = _is_covered(part, read)
        elif not part.count:
            is_named = bool(read)
        else:
            is_named, free = free > 0, free - 1
        if not is_named:
            left.append(part)
    return left


def _is_covered(part: PlanPart, read: Sequence[Observed]) -> bool:
    """Whether all that a leaf reads is named; of a list of paths that is cut, by a directory or by as many datasets."""
    fitting = [[one for one in read if _is_at(source, one)] for source in part.sources]
    if part.count <= len(part.sources):
        return all(fitting)
    above = any(_is_above(one, source) for source, found in zip(part.sources, fitting, strict=True) for one in found)
    return above or sum(is_path_namespace(one.dataset.namespace) for one in read) >= part.count


def _is_at(source: str, one: Observed) -> bool:
    """Whether a dataset is what a leaf reads: at its path, around or inside of it; or a table whose name ends alike."""
    if "/" in source or ":" in source:
        place, name = _place(source), _place(one.dataset.name)
        return is_path_namespace(one.dataset.namespace) and (_is_within(place, name) or _is_within(name, place))
    table = _names(source)
    return any(_end_alike(table, _names(name.name)) for name in one.names)


def _is_above(one: Observed, source: str) -> bool:
    place, name = _place(source), _place(one.dataset.name)
    return place != name and _is_within(place, name)


def _place(location: str) -> str:
    """Return the path of a location, without scheme, host and the slashes around it; a key of a bucket is a path."""
    _, separator, rest = location.partition("://")
    if separator:
        return rest.partition("/")[2].strip("/")
    return re.sub(r"\A[a-z][a-z0-9+.-]*:(?=/)", "", location).strip("/")


def _is_within(place: str, directory: str) -> bool:
    return place == directory or place.startswith(f"{directory}/") or not directory


def _names(name: str) -> list[str]:
    return [part.casefold() for part in _PARTS.split(name.replace("`", "").replace('"', "")) if part]


def _end_alike(table: Sequence[str], other: Sequence[str]) -> bool:
    return bool(table) and bool(other) and table[-1] == other[-1]
