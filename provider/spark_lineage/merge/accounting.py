"""Compares the leaves and writes of a plan with the datasets of its run; what none of these stands for is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import is_path_namespace

# A part needs datasets that are read or written, or columns that the listener saw before and after an ALTER.
Need = Literal["input", "any input", "output", "listener", "nothing"]

_PARTS = re.compile(r"[./]+")


class PlanPart(Struct, frozen=True, order=True, gc=False):
    """A part of a plan that a dataset has to stand for; ``name`` is what a count calls it.

    ``sources`` are the paths or the table that a leaf reads, as the plan has them, of ``count`` in all. A leaf without
    sources reads a dataset of which only the node is known.
    """

    name: str
    needs: Need
    sources: tuple[str, ...] = ()
    count: int = 1

    @property
    def is_own(self) -> bool:
        """Whether it needs a dataset that no other leaf reads: nothing else can be known to be its own."""
        return self.needs == "input" and not self.sources


OF_PROGRAM = PlanPart("rows of the program: what they are made of", "nothing")
"""What no source of evidence has: a program may write what it makes of the rows that a query has given it."""


def left_over(
    parts: Iterable[PlanPart], read: Sequence[Observed], written: Sequence[Observed], *, is_listened: bool = False
) -> list[PlanPart]:
    """Return the parts that no dataset stands for.

    :param is_listened: whether the listener has an event of the run
    """
    parts = list(parts)
    claimed = {one.dataset for one in read for part in parts if any(_is_at(source, one) for source in part.sources)}
    free = sum(one.dataset not in claimed for one in read)
    is_changed = any(one.former and one.former != one.schema for one in written)
    met = {"any input": bool(read), "output": bool(written), "listener": is_listened and is_changed}
    left = []
    for part in parts:
        if part.is_own:
            is_met, free = free > 0, free - 1
        else:
            is_met = _is_covered(part, read) if part.sources else met.get(part.needs, False)
        if not is_met:
            left.append(part)
    return left


def _is_covered(part: PlanPart, read: Sequence[Observed]) -> bool:
    """Whether all that a leaf reads is named; of a list of paths that is cut, by a directory or by as many datasets."""
    fitting = [[one for one in read if _is_at(source, one)] for source in part.sources]
    if part.count <= len(part.sources):
        return all(fitting)
    above = any(
        _place(source) != _place(one.dataset.name) and _is_within(_place(source), _place(one.dataset.name))
        for source, found in zip(part.sources, fitting, strict=True)
        for one in found
    )
    return above or sum(is_path_namespace(one.dataset.namespace) for one in read) >= part.count


def _is_at(source: str, one: Observed) -> bool:
    """Whether a dataset is what a leaf reads: at its path, around or inside of it; or a table whose name ends alike."""
    if "/" in source or ":" in source:
        place, name = _place(source), _place(one.dataset.name)
        return is_path_namespace(one.dataset.namespace) and (_is_within(place, name) or _is_within(name, place))
    table = _names(source)
    return bool(table) and any(_names(name.name)[-1:] == table[-1:] for name in one.names)


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
