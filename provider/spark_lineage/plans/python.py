"""What operators do that run functions which a plan cannot look into: Python's, scripts', and those of typed Datasets.

Such a function may make each column that it gives out from all that it is given. What rows are grouped by decides which
of them it is given together (``org.apache.spark.sql.execution.python``).
"""

from __future__ import annotations

import re

from spark_lineage.plans.plan import Node, elements
from spark_lineage.plans.scope import (
    AGGREGATION,
    GROUPED,
    TRANSFORMATION,
    Scope,
    attributes,
    defined,
    listed_by,
    project,
)

# f(k#1, v#2)#3: a function has the id of what it gives back.
_CALL = re.compile(r"[^\[].*\(.*\)#\d+L?", re.DOTALL)


def results(node: Node, scope: Scope) -> None:
    """``[f(v#1)#10], [pythonUDF0#12]``: the results come behind what is there."""
    functions, named, *_ = *node.arguments, ""
    for function, element in zip(elements(functions), attributes(named), strict=False):
        scope.give_out([element], scope.made_from(function, TRANSFORMATION))


def table_function(node: Node, scope: Scope) -> None:
    """``f(w#1, s#2)#3, [kept], [given out], eval type``: what is kept is missing if it is nothing."""
    sources = scope.made_from(node.arguments[0], TRANSFORMATION)
    *kept, given_out = node.lists or [""]
    scope.pass_on(attributes(kept[0]) if kept else ())
    scope.give_out(attributes(given_out), sources)


def aggregate(node: Node, scope: Scope) -> None:
    """``[keys], [f(v#1)#2], [k#3, f(v#1)#2#4 AS x#5]``: each function has a second id in the results."""
    *keys, functions, named = node.lists
    for key in elements(keys[0]) if keys else ():
        scope.define_as(defined(key))
        scope.decide(key, "GROUP_BY")
    for function in elements(functions):
        sources = scope.made_from(function, AGGREGATION)
        second_id = re.compile(rf"{re.escape(function)}(#(\d+)L?)")
        for match in second_id.finditer(named):
            scope.define(int(match[2]), "", sources)
        named = second_id.sub(r"\1", named)
    project(node, "", scope, named)


def over_rows(node: Node, scope: Scope) -> None:
    """``[keys], f(k#1, v#2)#3, [given out]``: a function of many rows, which may be groups of one or two children.

    The columns of two children may stand in the call under the ids of one: so it is given all that is below, without
    the keys in front. What it gives out is the last list.
    """
    lists = [each for part in node.lists if (each := attributes(part))]
    new = [each for each in lists if not any(element.id in scope.names for element in each)]
    keys = [each for each in lists if all(element.id in scope.names for element in each)]
    call = next(filter(_CALL.fullmatch, node.arguments), "")
    if len(scope.below) > 1:
        key_counts = [*map(len, keys), *(0 for _ in scope.below)]
        given = (each for child, count in zip(scope.below, key_counts, strict=False) for each in child.output[count:])
        sources = scope.all_of(given)
    else:
        sources = scope.made_from(call, TRANSFORMATION) if call else scope.all_of(scope.output)
    scope.dataset_wide |= scope.all_of((element.id for key in keys for element in key), GROUPED)
    scope.output = []
    scope.give_out(new[-1] if new else (), sources)


def objects(node: Node, scope: Scope) -> None:
    """``…, obj#5: Row`` or ``[… AS k#6]``: rows are made to objects, and those to rows again, by code."""
    sources = scope.all_of(scope.output)
    typed = [each for part in node.arguments if (each := defined(part.rpartition(": ")[0]))]
    new = [element for element in listed_by(node) or typed if element.id not in scope.names]
    if new:
        scope.output = []
        scope.give_out(new, sources)


def keyed(node: Node, scope: Scope) -> None:
    """``f, obj, [key#3]``: typed code computes a key for each row, behind its columns."""
    new = [element for element in listed_by(node) if element.id not in scope.names]
    scope.give_out(new, scope.all_of(scope.output))


def number(node: Node, scope: Scope) -> None:
    """``__index_level_0__#5L``: a column of row numbers, in front."""
    if element := defined(node.arguments[0]):
        scope.define(element.id, element.name)
        scope.output.insert(0, element.id)


def script(node: Node, scope: Scope) -> None:
    """``command, [given out], schema``: a program that is given all rows as text."""
    sources = scope.all_of(scope.output)
    scope.output = []
    scope.give_out(attributes(node.lists[0]) if node.lists else (), sources)
