"""What aggregates make of the columns that they are given, with or without DISTINCT, FILTER, PIVOT."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.plans.expressions import AGGREGATION
from spark_lineage.plans.lists import arguments, defined, elements, outputs
from spark_lineage.plans.names import ATTRIBUTE_NAME, hidden, shown
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import NOTHING, Rule, Scope, Sources, give_out_list

_PARTIAL = re.compile(r"(?:partial|merge)_")
_FILTER = " FILTER (WHERE "
_PIVOT, _LIST = "pivotfirst(", "listagg("
ORDER_END = re.compile(r" NULLS (?:FIRST|LAST)\Z")
# Another aggregate, carried through the grouping that a DISTINCT needs (RewriteDistinctAggregates).
_BESIDE_DISTINCT = re.compile(rf"first\((?P<name>{ATTRIBUTE_NAME})#\d+L?, true\)")
_CALLED = re.compile(r"\w+\(.*\)", re.DOTALL)
_DISTINCT_GROUP = re.compile(rf"{hidden('gid')}#(?P<id>\d+)")
_FUNCTION = re.compile(
    r"\b(?:sum|avg|count|min|max|first|last|collect_list|collect_set|\w*stddev\w*|\w*percentile\w*)\("
)


def aggregate(node: Node, scope: Scope) -> None:
    """Give out the keys and what the functions of an aggregate make; its first step gives out buffers."""
    if "Arguments" in node.fields:
        _logical_aggregate(node, scope)
        return
    functions, keys, given = (_sized(node, key) for key in ("Functions", "Keys", "Aggregate Attributes"))
    if functions is None or keys is None:
        scope.unread.append(f"{node.name}: its functions")
        functions, keys = functions or [], keys or []
    _group(keys, functions, scope)
    for place, function in _numbered(functions):
        if condition := _parted(function)[1]:
            scope.filters[place] = scope.deciding(condition, "CONDITIONAL")
    if any(_PARTIAL.match(function) for function in functions):
        # The final aggregate names the columns themselves again.
        return
    results = node.fields.get("Results", "")
    for (place, function), element in zip(_numbered(functions), given or (), strict=False):
        if attribute := defined(element):
            scope.define(attribute.id, "", _aggregated(function, scope) | scope.filters.get(place, NOTHING))
            if (first := _BESIDE_DISTINCT.match(function)) and _CALLED.fullmatch(shown(first["name"])):
                # Spark's own: what an aggregate gives for no rows.
                results = re.sub(rf"coalesce\(({ATTRIBUTE_NAME}#{attribute.id}L?), [^(),]*\)", r"\1", results)
    give_out_list(outputs(results, node.sizes.get("Results")), node, scope)


def _group(keys: Sequence[str], functions: Iterable[str], scope: Scope) -> None:
    """Define the keys; several DISTINCTs have ids of their groups, which are grouped by too."""
    if any("(distinct " in function for function in functions):
        scope.grouped.clear()
    # A column of the user's may have the name of these ids, but it comes from somewhere.
    groups = (_DISTINCT_GROUP.fullmatch(key) for key in keys)
    if any(int(group["id"]) in scope.expanded for group in groups if group):
        return
    for key in keys:
        scope.define_as(defined(key))
        scope.grouped |= scope.deciding(key, "GROUP_BY")


def _sized(node: Node, key: str) -> list[str] | None:
    """Return the elements of a field, None where they are not as many as it states."""
    size = node.sizes.get(key)
    found = elements(node.fields.get(key, ""), size)
    return found if size is None or len(found) == size else None


def _numbered(functions: Iterable[str]) -> Iterator[tuple[tuple[str, int], str]]:
    """Return aggregates in their order, each with its name and which of that name it is: only a FILTER may part two."""
    count = Counter[str]()
    for function in functions:
        called, _ = _parted(_PARTIAL.sub("", function))
        count[called] += 1
        yield (called, count[called]), function


def _parted(function: str) -> tuple[str, str]:
    """Return an aggregate without its FILTER, and that; the name of a column may hold one too."""
    called, _, condition = function.rpartition(_FILTER)
    return (called, condition) if called and called.count("(") == called.count(")") else (function, "")


def _aggregated(function: str, scope: Scope) -> Sources:
    """Return what an aggregate is made from.

    ``pivotfirst(k#1, v#2, a, b)`` picks the values of ``v`` by ``k``; ``listagg(v#2, ,, k#1 ASC NULLS FIRST, 0, 0)``
    orders them.
    """
    if function.startswith(_LIST):
        given = arguments(function.removeprefix(_LIST))
        orders = [part for part in given if ORDER_END.search(part)]
        values = (scope.made_from(part, AGGREGATION) for part in given if part not in orders)
        return NOTHING.union(*values, *(scope.deciding(part, "SORT") for part in orders))
    if not function.startswith(_PIVOT):
        return scope.made_from(function, AGGREGATION)
    key, value, *_ = arguments(function.removeprefix(_PIVOT))
    return scope.made_from(value, AGGREGATION) | scope.deciding(key, "CONDITIONAL")


def _logical_aggregate(node: Node, scope: Scope) -> None:
    """``[keys], [results]``, of a logical plan, without keys ``[results]``: the functions are inside of the results."""
    *keys, results = node.lists or [""]
    scope.grouped |= scope.deciding("".join(keys), "GROUP_BY")
    given_out = outputs(results) or []
    for element in given_out:
        scope.define_as(element, AGGREGATION if _FUNCTION.search(element.expression or "") else IDENTITY)
    scope.output = [element.id for element in given_out]


AGGREGATES: dict[str, Rule] = dict.fromkeys(
    ("Aggregate", "HashAggregate", "MergingSessions", "ObjectHashAggregate", "SortAggregate"), aggregate
)
"""The rules of aggregates, by kind."""
