"""What operators do that run functions which a plan cannot look into: Python's, scripts', and those of typed Datasets.

Such a function may make each column that it gives out from all that it is given. What rows are grouped by decides which
of them it is given together (``org.apache.spark.sql.execution.python``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spark_lineage.plans.expressions import AGGREGATION, GROUPED, TRANSFORMATION, Defined, defined, elements
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import Scope, Sources, attributes, node_arguments, project

# f(k#1, v#2)#3: a function has the id of what it gives back.
_CALL = re.compile(r".*\(.*\)#\d+L?", re.DOTALL)


def results(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``[f(v#1)#10], [pythonUDF0#12]``: the results come behind what is there."""
    parts = node_arguments(node)
    named = attributes(parts[1]) if len(parts) > 1 else []
    for function, element in zip(elements(parts[0]), named, strict=False):
        scope.give_out(element, scope.made_from(function, TRANSFORMATION))


def table_function(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``f(w#1, s#2)#3, [kept], [given out], eval type``: what is kept is missing if it is nothing."""
    function, *rest = node_arguments(node)
    lists = [part for part in rest if part.startswith("[")]
    kept = lists[0] if len(lists) > 1 else "[]"
    given_out = attributes(lists[-1]) if lists else []
    sources = scope.made_from(function, TRANSFORMATION)
    scope.output = [element.id for element in attributes(kept) if element.id in scope.names]
    _give_out(scope, given_out, sources)


def aggregate(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``[keys], [f(v#1)#2], [k#3, f(v#1)#2#4 AS x#5]``: each function has a second id in the results."""
    *keys, functions, named = [part for part in node_arguments(node) if part.startswith("[")]
    for key in elements(keys[0]) if keys else ():
        scope.define_as(defined(key))
        scope.dataset_wide.update(scope.deciding(key, "GROUP_BY"))
    for function in elements(functions):
        sources = scope.made_from(function, AGGREGATION)
        for match in re.finditer(rf"{re.escape(function)}(#(\d+)L?)", named):
            scope.define(int(match[2]), "", sources)
        named = re.sub(rf"{re.escape(function)}(#\d+L?)", r"\1", named)
    project(Node(0, ""), "", named, scope)


def over_rows(node: Node, scope: Scope, below: list[Scope]) -> None:
    """``[keys], f(k#1, v#2)#3, [given out]``: a function of many rows, which may be groups of one or two children.

    Of what it is given, two children's columns may stand in the call under the ids of one: they are all that is below,
    without the keys in front. What it gives out is the last list.
    """
    parts = node_arguments(node)
    lists = [attributes(part) for part in parts if part.startswith("[")]
    new = [each for each in lists if each and not any(element.id in scope.names for element in each)]
    keys = [each for each in lists if each and all(element.id in scope.names for element in each)]
    call = next((part for part in parts if _CALL.fullmatch(part) and not part.startswith("[")), "")
    if len(below) > 1:
        given = [
            identity
            for position, child in enumerate(below)
            for identity in child.output[len(keys[position]) if position < len(keys) else 0 :]
        ]
        sources = scope.all_of(given)
    else:
        sources = scope.made_from(call, TRANSFORMATION) if call else scope.all_of(scope.output)
    for key in keys:
        scope.dataset_wide |= scope.all_of((each.id for each in key), GROUPED)
    scope.output = []
    _give_out(scope, new[-1] if new else (), sources)


def objects(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``…, obj#5: Row`` or ``[… AS k#6]``: rows are made to objects, and those to rows again, by code."""
    sources = scope.all_of(scope.output)
    parts = node_arguments(node)
    lists = [element for part in parts for element in attributes(part)]
    typed = [each for part in parts if (each := defined(part.rpartition(": ")[0]))]
    new = [element for element in lists or typed if element.id not in scope.names]
    if new:
        scope.output = []
        _give_out(scope, new, sources)


def keyed(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``f, obj, [key#3]``: typed code computes a key for each row, behind its columns."""
    sources = scope.all_of(scope.output)
    for element in (each for part in node_arguments(node) for each in attributes(part)):
        if element.id not in scope.names:
            scope.give_out(element, sources)


def number(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``__index_level_0__#5L``: a column of row numbers, in front."""
    if element := defined(node_arguments(node)[0]):
        scope.define(element.id, element.name, ())
        scope.output.insert(0, element.id)


def script(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``command, [given out], schema``: a program that is given all rows as text."""
    given_out = next((attributes(part) for part in node_arguments(node) if part.startswith("[")), [])
    sources = scope.all_of(scope.output)
    scope.output = []
    _give_out(scope, given_out, sources)


def _give_out(scope: Scope, elements: Iterable[Defined], sources: Sources) -> None:
    for element in elements:
        scope.give_out(element, sources)
