"""Reads the aggregates of plans: partial and final steps, those of a DISTINCT, and those of logical plans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from spark_lineage.plans.expressions import (
    AGGREGATION,
    IDENTITY,
    arguments,
    defined,
    elements,
)
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import Scope, Sources, given_out_of, node_arguments, project

_PARTIAL = re.compile(r"(?:partial|merge)_")
_FILTER = " FILTER (WHERE "
_PIVOT = "pivotfirst("
# Another aggregate, carried through the grouping that a DISTINCT needs (RewriteDistinctAggregates).
_BESIDE_DISTINCT = re.compile(r"first\(\w+\(.*\)#\d+L?, true\)")
_DISTINCT_GROUP = re.compile(r"gid#\d+")
_FUNCTION = re.compile(
    r"\b(?:sum|avg|count|min|max|first|last|collect_list|collect_set|\w*stddev\w*|\w*percentile\w*)\("
)


def aggregate(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """Return out the keys and what the functions of an aggregate make; its first step gives out buffers."""
    if "Arguments" in node.fields:
        _logical_aggregate(node, scope)
        return
    functions = elements(node.fields.get("Functions", ""))
    is_partial = any(_PARTIAL.match(function) for function in functions)
    keys = elements(node.fields.get("Keys", ""))
    if any("(distinct " in function for function in functions):
        scope.grouped.clear()
    # Several DISTINCTs are told apart by the id of their group, which is grouped by too.
    is_step = any(_DISTINCT_GROUP.fullmatch(key) for key in keys)
    for key in () if is_step else keys:
        scope.define_as(defined(key))
        scope.grouped.update(scope.deciding(key, "GROUP_BY"))
    results = node.fields.get("Results", "")
    for place, function in _numbered(functions):
        _, condition = _parted(function)
        if condition:
            scope.filters[place] = frozenset(scope.deciding(condition, "CONDITIONAL"))
    if is_partial:
        # What it gives out are buffers; the final aggregate names the columns themselves again.
        return
    given = elements(node.fields.get("Aggregate Attributes", ""))
    for (place, function), element in zip(_numbered(functions), given, strict=False):
        if attribute := defined(element):
            made_from = _aggregated(function, scope) | scope.filters.get(place, frozenset())
            scope.define(attribute.id, "", made_from)
            # Its name repeats the function with the attributes in it.
            results = results.replace(element, f"#{attribute.id}")
            if _BESIDE_DISTINCT.match(function):
                # Spark's own: what an aggregate gives for no rows.
                results = re.sub(rf"coalesce\(#{attribute.id}, [^(),]*\)", f"#{attribute.id}", results)
    project(node, "Results", results, scope)


def _numbered(functions: Iterable[str]) -> Iterator[tuple[tuple[str, int], str]]:
    """Return aggregates in their order, each with its name and which of that name it is: only a FILTER may part two."""
    count = Counter[str]()
    for function in functions:
        called, _ = _parted(_PARTIAL.sub("", function))
        count[called] += 1
        yield (called, count[called]), function


def _aggregated(function: str, scope: Scope) -> Sources:
    """Return what an aggregate is made from; ``pivotfirst(k#1, v#2, a, b)`` picks the values of ``v`` by ``k``."""
    if not function.startswith(_PIVOT):
        return scope.made_from(function, AGGREGATION)
    key, value, *_ = arguments(function.removeprefix(_PIVOT))
    return scope.made_from(value, AGGREGATION) | frozenset(scope.deciding(key, "CONDITIONAL"))


def _logical_aggregate(node: Node, scope: Scope) -> None:
    """``[keys], [results]``, of a logical plan: the functions are inside of the results."""
    keys, results, *_ = *node_arguments(node), "", ""
    scope.grouped.update(scope.deciding(keys, "GROUP_BY"))
    given_out = given_out_of(elements(results), scope)
    for element in given_out:
        scope.define_as(element, AGGREGATION if _FUNCTION.search(element.expression or "") else IDENTITY)
    scope.output = [element.id for element in given_out]


def _parted(function: str) -> tuple[str, str]:
    """Return an aggregate without its FILTER, and what that says; the name of a column may hold one too."""
    called, _, condition = function.rpartition(_FILTER)
    return (called, condition) if called and called.count("(") == called.count(")") else (function, "")
