"""What each kind of operator does to the columns that it is given, a rule a kind (``org.apache.spark.sql.execution``).

A rule finds in its scope what the children give out, in order, and leaves there what the operator gives out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.plans.aggregates import AGGREGATES, ORDER_END
from spark_lineage.plans.expressions import AGGREGATION, GROUPED
from spark_lineage.plans.functions import FUNCTIONS
from spark_lineage.plans.generators import GENERATORS
from spark_lineage.plans.lists import Defined, attributes, outputs
from spark_lineage.plans.names import ATTRIBUTE, hidden
from spark_lineage.plans.plan import GIVEN, Node
from spark_lineage.plans.scope import NOTHING, Rule, Scope, give_out_list, project

# Of the functions of a window these pass values on; all others are aggregates.
_OFFSETS = re.compile(r"(?:lag|lead|nth_value|row_number|rank|dense_rank|percent_rank|cume_dist|ntile)\(")
# RewriteExceptAll and RewriteIntersectAll of Spark's optimizer mark the rows of each side.
_COUNTED = re.compile(rf"\[(?:-1 AS {hidden('vcol')}|null AS {hidden('vcol1')})#\d+")
_EXISTENCE = re.compile(rf"ExistenceJoin\((?P<attribute>{ATTRIBUTE}|\w+#\d+)\)")
_NEXT_ROW = "], ["
_SORT = re.compile(r"(?P<orders>\[.*\]), (?P<is_global>true|false)(?:, \d+)?", re.DOTALL)
_TOP = re.compile(r"(?:\d+, )+(?P<lists>\[.*\])", re.DOTALL)
_WINDOW = re.compile(rf"(?P<windows>\[.*? AS {ATTRIBUTE}\])(?=, \[|\Z)", re.DOTALL)


def rename(scope: Scope, given_out: Sequence[Defined], below: Scope) -> None:
    """Give out what another operator does under other ids, by position: caches, reused exchanges."""
    scope.dataset_wide |= below.decisions
    scope.unread += below.unread
    scope.is_whole &= below.is_whole
    for attribute, identity in zip(given_out, below.output, strict=False):
        scope.define(attribute.id, attribute.name, below.sources[identity])
    scope.pass_on(given_out)


def _distinct(_node: Node, scope: Scope) -> None:
    scope.dataset_wide |= scope.all_of(scope.output, GROUPED)
    scope.output = list(scope.below[0].output)


def _unite(node: Node, scope: Scope) -> None:
    """Give out the columns of all children by position, under the ids of the first (``UnionExec.output``).

    EXCEPT ALL and INTERSECT ALL are a union, too; of its second child no row comes out.
    """
    scope.output = list(scope.below[0].output)
    passing: list[Scope] = []
    for child, below in zip(node.children, scope.below, strict=True):
        if _COUNTED.search(child.fields.get("Output", "")):
            scope.dataset_wide |= below.all_of(below.output, GROUPED)
        else:
            passing.append(below)
    for position, identity in enumerate(scope.output):
        columns = (below.sources[below.output[position]] for below in passing if position < len(below.output))
        scope.define(identity, scope.names[identity], NOTHING.union(*columns))


def _loop(node: Node, scope: Scope) -> None:
    """Give out the columns of a recursive query: those of its anchor and of its step, under ids of its own."""
    _unite(node, scope)
    rename(scope, attributes(node.fields.get("Output", "")), Scope(scope.names, scope.sources, scope.output))


def _join(node: Node, scope: Scope) -> None:
    # A logical join has its type and condition as arguments.
    for name in ("Left keys", "Right keys", "Join condition", "Arguments"):
        scope.decide(node.fields.get(name, ""), "JOIN")
    kind = node.fields.get("Join type", node.arguments[0])
    existence = _EXISTENCE.fullmatch(kind)
    if existence or kind in {"LeftSemi", "LeftAnti"}:
        scope.output = list(scope.below[0].output)
    if existence:
        scope.give_out(attributes(f"[{existence['attribute']}]"))


def is_local_sort(node: Node) -> bool:
    """Whether a sort is within partitions alone."""
    sort = _SORT.fullmatch(node.fields.get("Arguments", ""))
    return sort is not None and sort["is_global"] == "false"


def _sort(node: Node, scope: Scope) -> None:
    # Sorts that Spark puts in for joins and windows are not global.
    if (sort := _SORT.fullmatch(node.fields.get("Arguments", ""))) and sort["is_global"] == "true":
        scope.decide(sort["orders"], "SORT")


def _take_ordered(node: Node, scope: Scope) -> None:
    """``10, [a#1 ASC NULLS FIRST], [a#1, f(b#2) AS c#3]``: a literal may look as the end of the first list does."""
    top = _TOP.fullmatch(node.fields.get("Arguments", ""))
    lists = top["lists"] if top else ""
    ends = [match.start() for match in re.finditer(re.escape(_NEXT_ROW), lists)]
    size = node.sizes.get(GIVEN)
    halves = [(lists[1:end], outputs(lists[end + len(_NEXT_ROW) - 1 :], size)) for end in ends]
    fitting = [(orders, output) for orders, output in halves if output is not None and ORDER_END.search(orders)]
    orders, output = fitting[0] if len(fitting) == 1 else (lists, None)
    scope.decide(orders, "SORT")
    give_out_list(output, node, scope)


def _window(node: Node, scope: Scope) -> None:
    window = _WINDOW.match(node.fields.get("Arguments", ""))
    found = outputs(window["windows"]) if window else None
    if found is None:
        scope.unread.append(f"{node.name}: its columns")
    for element in found or ():
        scope.define_as(element, IDENTITY if _OFFSETS.match(element.expression or "") else AGGREGATION)
        scope.output.append(element.id)


_RULES: tuple[tuple[Rule, str], ...] = (
    (lambda node, scope: rename(scope, attributes(node.arguments[0]), scope.below[0]), "InMemoryRelation"),
    # `[keys], state info […]`: which rows there are depends on them.
    (
        lambda node, scope: scope.decide(node.arguments[0], "GROUP_BY"),
        "Deduplicate StreamingDeduplicate StreamingDeduplicateWithinWatermark",
    ),
    (_distinct, "Distinct"),
    # One of a logical plan has its condition as arguments; the other's is read of all operators.
    (lambda node, scope: scope.decide(node.fields.get("Arguments", ""), "FILTER"), "Filter"),
    (_join, "BroadcastHashJoin BroadcastNestedLoopJoin CartesianProduct Join ShuffledHashJoin SortMergeJoin"),
    (_join, "StreamingSymmetricHashJoin"),
    (_loop, "UnionLoop"),
    # A Scan of a cached table that has a name; one of a logical plan has its columns as arguments.
    (
        lambda node, scope: project(node, "Output" if "Output" in node.fields else "Arguments", scope),
        "InMemoryTableScan Project Scan",
    ),
    (_sort, "Sort"),
    (_take_ordered, "TakeOrderedAndProject"),
    (_unite, "Union"),
    (_window, "ArrowWindowPython Window WindowInPandas"),
)
RULES: dict[str, Rule] = {
    **AGGREGATES,
    **FUNCTIONS,
    **GENERATORS,
    **{kind: rule for rule, kinds in _RULES for kind in kinds.split()},
}
