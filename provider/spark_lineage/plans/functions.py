"""What code over rows makes of them: Python's, scripts', that of typed Datasets. A plan cannot look into it.

Each column may come from all that the code is given; what rows are grouped by decides which are given together.
"""

from __future__ import annotations

import re

from spark_lineage.merge.lineage import Transformation
from spark_lineage.plans.expressions import AGGREGATION, GROUPED, TRANSFORMATION
from spark_lineage.plans.lists import PURE_LIST, Defined, attributes, defined, elements, outputs
from spark_lineage.plans.names import hidden
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import Rule, Scope, give_out_list, listed_by

_UNKNOWN = Transformation("INDIRECT", "UNKNOWN")
# f(k#1, v#2)#3: a function has the id of what it gives back.
_CALL = re.compile(r"[^\[].*\(.*\)#\d+L?", re.DOTALL)
_RESULTS = re.compile(rf"(?P<functions>\[.*\]), (?P<results>{PURE_LIST})(?:, \d+)?", re.DOTALL)


def unknown(node: Node, scope: Scope) -> None:
    """Read an operator that no rule knows: all columns that it is given may decide on all that it gives out."""
    scope.dataset_wide |= scope.all_of(scope.output, _UNKNOWN)
    # An operator above names the columns that it passes on.
    scope.output = []
    scope.give_out(_new(node, scope))


def _results(node: Node, scope: Scope) -> None:
    """``[f(v#1)#10], [pythonUDF0#12]``: the results come behind what is there."""
    found = _RESULTS.fullmatch(node.fields.get("Arguments", ""))
    results = attributes(found["results"]) if found else []
    functions = elements(found["functions"], len(results)) if found else []
    if len(functions) != len(results) or not found:
        scope.unread.append(f"{node.name}: its functions")
    for function, element in zip(functions, results, strict=False):
        scope.give_out([element], scope.made_from(function, TRANSFORMATION))


def _table_function(node: Node, scope: Scope) -> None:
    """``f(w#1, s#2)#3, [kept], [given out], eval type``: what is kept is missing if it is nothing."""
    sources = scope.made_from(node.arguments[0], TRANSFORMATION)
    *kept, given_out = node.lists or [""]
    scope.pass_on(attributes("".join(kept[:1])))
    scope.give_out(attributes(given_out), sources)


def _python_aggregate(node: Node, scope: Scope) -> None:
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
        named = second_id.sub(rf"{hidden('')}\1", named)
    give_out_list(outputs(named), node, scope)


def _over_rows(node: Node, scope: Scope) -> None:
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


def _objects(node: Node, scope: Scope) -> None:
    """``…, obj#5: Row`` or ``[… AS k#6]``: code makes objects of rows, and rows of those; a script, text of text."""
    if new := _new(node, scope):
        sources, scope.output = scope.all_of(scope.output), []
        scope.give_out(new, sources)


def _new(node: Node, scope: Scope) -> list[Defined]:
    """Return what a node names, in lists or as ``obj#5: Row``, and none below gives out."""
    alone = (defined(part.rpartition(": ")[0] or part) for part in node.arguments)
    named = listed_by(node) or filter(None, alone)
    return list({element.id: element for element in named if element.id not in scope.names}.values())


def _number(node: Node, scope: Scope) -> None:
    """``__index_level_0__#5L``: a column of row numbers, in front."""
    if element := defined(node.arguments[0]):
        scope.define(element.id, element.name)
        scope.output.insert(0, element.id)


_OF_FUNCTIONS: tuple[tuple[Rule, str], ...] = (
    (_python_aggregate, "AggregateInPandas ArrowAggregatePython"),
    # `f, obj, [key#3]`: typed code computes a key for each row, behind its columns.
    (
        lambda node, scope: scope.give_out(_new(node, scope), scope.all_of(scope.output)),
        "AppendColumns AppendColumnsWithObject",
    ),
    (_number, "AttachDistributedSequence"),
    (_objects, "CoGroup DeserializeToObject FlatMapGroupsInR FlatMapGroupsInRWithArrow FlatMapGroupsWithState"),
    (_objects, "MapElements MapGroups MapPartitions MapPartitionsInRWithArrow SerializeFromObject"),
    (_objects, "HiveScriptTransformation SparkScriptTransformation TransformWithState"),
    (_over_rows, "FlatMapCoGroupsInArrow FlatMapCoGroupsInPandas FlatMapGroupsInArrow FlatMapGroupsInPandas"),
    (_over_rows, "FlatMapGroupsInPandasWithState MapInArrow MapInPandas PythonMapInArrow"),
    (_over_rows, "TransformWithStateInPandas TransformWithStateInPySpark"),
    (_results, "ArrowEvalPython BatchEvalPython"),
    (_table_function, "ArrowEvalPythonUDTF BatchEvalPythonUDTF"),
)
FUNCTIONS = {kind: rule for rule, kinds in _OF_FUNCTIONS for kind in kinds.split()}
"""The rules of operators that run functions over rows, by kind."""
