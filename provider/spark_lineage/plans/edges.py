"""Traces the columns of a plan back to what it reads, by the ids of its attributes.

An operator gives out attributes; each has the columns that it was made from. Ids mean one thing in a plan, but for
those of a union, which are the ids of its first child: what an operator gives out is therefore added to what those
below it gave, from the leaves up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_lineage.merge.lineage import Transformation
from spark_lineage.plans.expressions import arguments, defined, elements
from spark_lineage.plans.operators import apply, kind_of, rename
from spark_lineage.plans.plan import Node, Plan
from spark_lineage.plans.scope import Read, Scope, Sources, attributes, given_out_by, through

Leaf = Callable[[Node], Read]

_NOTHING: Sources = frozenset()
_FORMER_MAX = 1000
_SUBQUERY = re.compile(r"\bSubquery (?:scalar-)?subquery#(?P<id>\d+)(?:, \[id=#\d+\]\.(?P<field>\w+))?")
_STRUCT = "named_struct("


@dataclass(frozen=True)
class Column:
    """One column that a plan gives out, under the id of its attribute, and what it was made from."""

    id: int
    name: str
    sources: Sources


@dataclass(frozen=True)
class Traced:
    """The columns of a plan's root, and what decided on its rows (filters, joins, groupings, orders).

    ``unread`` are the names of operators that no rule reads; ``is_whole`` tells that there is none, and that each leaf
    is a dataset that the plan names.
    """

    columns: tuple[Column, ...] = ()
    dataset_wide: Sources = _NOTHING
    unread: tuple[str, ...] = ()
    is_whole: bool = False
    is_cut: bool = False
    """Whether the text leaves columns out, so that there may be more of them, made from more."""


UNTRACED = Traced()


def trace(plan: Plan, leaf: Leaf, former: dict[int, Sources] | None = None) -> Traced:
    """Return the columns of a plan's root with their sources; ``leaf`` tells what the scans read.

    :param former: what the subqueries of earlier plans of the application stand for, to which those of this are added:
        one that is part of a cache is told by the plan that was run first
    """
    tracer = _Tracer(plan, leaf, {} if former is None else former)
    scope = tracer.scope(plan.root)
    columns = tuple(Column(identity, scope.names[identity], scope.sources[identity]) for identity in scope.output)
    unread = tuple(sorted({*scope.unread, *tracer.subqueries.unread}))
    is_whole = scope.is_whole and tracer.subqueries.is_whole and not unread and bool(columns)
    return Traced(columns, scope.decisions, unread, is_whole=is_whole)


def sorted_by(traced: Traced, columns: frozenset[int]) -> Traced:
    """Return the columns of a plan whose rows are sorted by some of them, which the plan does not say."""
    sources = (column.sources for column in traced.columns if column.id in columns)
    deciding = through(sources, Transformation("INDIRECT", "SORT"))
    return replace(traced, dataset_wide=traced.dataset_wide | deciding)


class _Tracer:
    def __init__(self, plan: Plan, leaf: Leaf, former: dict[int, Sources]) -> None:
        self._leaf = leaf
        self._nodes = {node.number: node for node in plan.walk()}
        fields = [text for node in plan.walk() for text in node.fields.values()]
        named = {int(found["id"]): found["field"] for text in fields for found in _SUBQUERY.finditer(text)}
        known = {identity: former[identity] for identity in named.keys() & former.keys()}
        self.subqueries = Scope(dict.fromkeys(known, ""), known)
        self._anchor: list[Sources] = []
        # Those inside others come last.
        for identity, subquery in reversed(plan.subqueries.items()):
            scope = self.scope(subquery)
            value = _value(subquery, scope, named.get(identity))
            # What decides on its rows decides on its value.
            self.subqueries.define(identity, "", value | scope.decisions)
            self.subqueries.unread += scope.unread
            self.subqueries.is_whole &= scope.is_whole
            former[identity] = self.subqueries.sources[identity]
        if not named.keys() <= self.subqueries.names.keys():
            # Spark does not print those of cached data.
            self.subqueries.unread.append("a scalar subquery")
        while len(former) > _FORMER_MAX:
            # A stream has new ones in each batch.
            del former[next(iter(former))]

    def scope(self, node: Node) -> Scope:
        """Return what is known above ``node``."""
        # Of an adaptive plan that was run, the first child is the final plan, in which an empty relation may stand for
        # what gave no rows; the last is the initial one.
        children = node.children[-1:] if node.name.startswith("AdaptiveSparkPlan") else node.children
        below: list[Scope] = []
        for child in children:
            below.append(self.scope(child))
            if kind_of(node.name) == "UnionLoop":
                # What its step reads as UnionLoopRef begins with the rows of its anchor, the first child.
                self._anchor = self._anchor or [below[0].sources[identity] for identity in below[0].output]
        scope = Scope(dict(self.subqueries.names), dict(self.subqueries.sources))
        for each in below:
            scope.add(each)
        if node.reuses in self._nodes:
            rename(scope, attributes(node.fields.get("Output", "")), self.scope(self._nodes[node.reuses]))
        elif below:
            apply(node, scope, below)
        else:
            self._read(node, scope)
        return scope

    def _read(self, node: Node, scope: Scope) -> None:
        sources, is_whole, deciding = (
            Read(self._anchor, is_whole=True) if kind_of(node.name) == "UnionLoopRef" else self._leaf(node)
        )
        scope.is_whole &= is_whole
        scope.dataset_wide |= deciding
        for position, attribute in enumerate(given_out_by(node)):
            scope.give_out(attribute, sources[position] if position < len(sources) else _NOTHING)
        apply(node, scope, [])


def _value(subquery: Node, scope: Scope, field: str | None) -> Sources:
    """Return what a scalar subquery gives: its only column, or a field of that where Spark has merged several."""
    if not scope.output:
        return _NOTHING
    made = (defined(each) for node in subquery.walk() if field for each in elements(node.fields.get("Output", "")))
    for one in made:
        if one is not None and one.id == scope.output[0] and (one.expression or "").startswith(_STRUCT):
            parts = arguments((one.expression or "").removeprefix(_STRUCT).removesuffix(")"))
            fields = dict(zip(parts[::2], parts[1::2], strict=False))
            if field in fields:
                return scope.made_from(fields[field])
    return scope.sources[scope.output[0]]
