"""What each operator of a physical plan does to the columns that it is given (``org.apache.spark.sql.execution``)."""

from __future__ import annotations

import re
from collections.abc import Callable

from spark_lineage.merge.lineage import Transformation
from spark_lineage.plans import multiplied as plan_multiplied
from spark_lineage.plans import python as plan_python
from spark_lineage.plans.aggregates import aggregate
from spark_lineage.plans.expressions import (
    AGGREGATION,
    GROUPED,
    IDENTITY,
    Defined,
    defined,
    elements,
)
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import Scope, attributes, node_arguments, project

# What a join prunes partitions by.
_PRUNING = "dynamicpruningexpression("
# Of the functions of a window these pass values on; all others are aggregates.
_OFFSETS = re.compile(r"(?:lag|lead|nth_value|row_number|rank|dense_rank|percent_rank|cume_dist|ntile)\(")
# They give out what they are given, whatever their arguments say.
_PASSING = frozenset(
    {
        "AQEShuffleRead",
        "AdaptiveSparkPlan",
        "BroadcastExchange",
        "BroadcastQueryStage",
        "Coalesce",
        "CollectLimit",
        "CollectMetrics",
        "CollectTail",
        "ColumnarToRow",
        "CommandResult",
        "DeltaInvariantChecker",
        "DeltaOptimizedWriter",
        "EventTimeWatermark",
        "Exchange",
        "Execute",
        "GlobalLimit",
        "GroupPartitions",
        "InputAdapter",
        "LocalLimit",
        # Iceberg's, in its rewrite of files.
        "OrderAwareCoalesce",
        "PythonWorkerLogs",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResultQueryStage",
        "RowToColumnar",
        "Sample",
        "SessionWindowStateStoreRestore",
        "SessionWindowStateStoreSave",
        "ShuffleQueryStage",
        "SkewJoinChildWrapper",
        "StateStoreRestore",
        "StateStoreSave",
        "StreamingGlobalLimit",
        "StreamingLocalLimit",
        "Subquery",
        "SubqueryAdaptiveBroadcast",
        "SubqueryAlias",
        "SubqueryBroadcast",
        "TableCacheQueryStage",
        "UpdateEventTimeColumn",
        "UpdatingSessions",
        "View",
        "WholeStageCodegen",
        "WindowGroupLimit",
        "WriteFiles",
        # They write what they are given.
        "AppendData",
        "AtomicCreateTableAsSelect",
        "AtomicReplaceTableAsSelect",
        "CreateTableAsSelect",
        "OverwriteByExpression",
        "OverwritePartitionsDynamic",
        "ReplaceData",
        "ReplaceTableAsSelect",
        "WriteDelta",
        "WriteToContinuousDataSource",
        "WriteToDataSourceV2",
    }
)
_AGGREGATES = frozenset({"Aggregate", "HashAggregate", "MergingSessions", "ObjectHashAggregate", "SortAggregate"})
_JOINS = frozenset(
    {
        "BroadcastHashJoin",
        "BroadcastNestedLoopJoin",
        "Join",
        "ShuffledHashJoin",
        "SortMergeJoin",
        "StreamingSymmetricHashJoin",
    }
)
# They have no children; which dataset they read is told elsewhere.
_LEAVES = frozenset(
    {
        "BatchScan",
        "ContinuousScan",
        "EmptyRelation",
        "FileScan",
        "HiveTableRelation",
        "InMemoryRelation",
        "LocalRelation",
        "LocalTableScan",
        "LogicalRDD",
        "LogicalRelation",
        "MicroBatchScan",
        "OneRowRelation",
        "Range",
        "RealTimeStreamScan",
        "RelationV2",
        "ReusedExchange",
        "ReusedSubquery",
        "Scan",
        "StreamingRelation",
        "UnionLoopRef",
    }
)
# RewriteExceptAll and RewriteIntersectAll of Spark's optimizer mark the rows of each side.
_COUNTED = re.compile(r"\[(?:-1 AS vcol|null AS vcol1)#\d+")
_UNKNOWN = Transformation("INDIRECT", "UNKNOWN")


def is_read(name: str) -> bool:
    """Tell whether a rule reads an operator, by its name in a plan."""
    kind = kind_of(name)
    return any(kind in known for known in (_AGGREGATES, _JOINS, _PASSING, _LEAVES, _BY_KIND))


def kind_of(name: str) -> str:
    """Return what kind of operator a name tells: ``Scan`` of ``Scan parquet db.t``."""
    return re.split(r"[ (\[]", name, maxsplit=1)[0]


def apply(node: Node, scope: Scope, below: list[Scope]) -> None:
    """Change ``scope``, which holds what the children give out, to what ``node`` gives out."""
    kind = kind_of(node.name)
    if kind in _AGGREGATES:
        aggregate(node, scope, below)
    elif kind not in _PASSING and not (kind == "Sort" and node_arguments(node)[1:2] == ["false"]):
        # A sort within partitions is mostly there for the aggregate above.
        scope.dataset_wide |= scope.grouped
        scope.grouped.clear()
        if kind in _JOINS:
            _join(node, scope, below)
        elif below:
            _BY_KIND.get(kind, _unknown)(node, scope, below)
        elif kind not in _LEAVES:
            scope.unread.append(kind)
    _complete(node, scope)
    scope.decide(node.fields.get("Condition", ""), "FILTER")
    for condition in elements(node.fields.get("PartitionFilters", "")):
        if not condition.startswith(_PRUNING):
            scope.decide(condition, "FILTER")


def _complete(node: Node, scope: Scope) -> None:
    """Learn from an operator what that below it does not say."""
    if scope.unread and not scope.output and kind_of(node.name) in _PASSING:
        scope.output = [each.id for each in attributes(node.fields.get("Input", "")) if each.id in scope.names]
    if node.name == "WriteFiles" and node.children[0].name == "Sort":
        # Right below a write it is the user's, or by what partitions and buckets are written by.
        scope.decide(node_arguments(node.children[0])[0], "SORT")


def _select(node: Node, scope: Scope, _below: list[Scope]) -> None:
    name = "Output" if "Output" in node.fields else ""
    # That of a logical plan, as commands hold it, has its columns as arguments.
    project(node, name, node.fields.get(name or "Arguments", ""), scope)


def _filter(node: Node, scope: Scope, _below: list[Scope]) -> None:
    # One of a logical plan has its condition as arguments; the other's is read of all operators.
    scope.decide(node.fields.get("Arguments", ""), "FILTER")


def _loop(node: Node, scope: Scope, below: list[Scope]) -> None:
    """Return out the columns of a recursive query: those of its anchor and of its step, under ids of its own."""
    _unite(node, scope, below)
    united = Scope(scope.names, scope.sources, scope.output)
    rename(scope, attributes(node.fields.get("Output", "")), united)


def _distinct(_node: Node, scope: Scope, below: list[Scope]) -> None:
    scope.dataset_wide |= scope.all_of(scope.output, GROUPED)
    scope.output = list(below[0].output)


def _cache(node: Node, scope: Scope, below: list[Scope]) -> None:
    rename(scope, attributes(node_arguments(node)[0]), below[0])


def rename(scope: Scope, given_out: list[Defined], below: Scope) -> None:
    """Return out what another operator does under other ids, by position: caches, reused exchanges."""
    scope.dataset_wide |= below.decisions
    scope.unread += below.unread
    scope.is_whole &= below.is_whole
    for attribute, identity in zip(given_out, below.output, strict=False):
        scope.define(attribute.id, attribute.name, below.sources[identity])
    scope.output = [attribute.id for attribute in given_out if attribute.id in scope.names]


def _unite(node: Node, scope: Scope, below: list[Scope]) -> None:
    """Return out the columns of all children by position, under the ids of the first (``UnionExec.output``).

    EXCEPT ALL and INTERSECT ALL are a union, too; of its second child no row comes out.
    """
    scope.output = list(below[0].output)
    counted = [_COUNTED.search(child.fields.get("Output", "")) for child in node.children]
    for child, is_counted in zip(below, counted, strict=True):
        if is_counted:
            scope.dataset_wide |= child.all_of(child.output, GROUPED)
    passing = [child for child, is_counted in zip(below, counted, strict=True) if not is_counted]
    for position, identity in enumerate(scope.output):
        columns = (child.sources[child.output[position]] for child in passing if position < len(child.output))
        scope.define(identity, scope.names[identity], frozenset().union(*columns))


def _join(node: Node, scope: Scope, below: list[Scope]) -> None:
    # A logical join has its type and condition as arguments.
    for name in ("Left keys", "Right keys", "Join condition", "Arguments"):
        scope.decide(node.fields.get(name, ""), "JOIN")
    kind = node.fields.get("Join type", node_arguments(node)[0])
    if kind in {"LeftSemi", "LeftAnti"}:
        scope.output = list(below[0].output)
    elif existence := re.fullmatch(r"ExistenceJoin\((?P<name>.*)#(?P<id>\d+)\)", kind):
        scope.output = [*below[0].output, int(existence["id"])]
        scope.define(int(existence["id"]), existence["name"], ())


def _sort(node: Node, scope: Scope, _below: list[Scope]) -> None:
    parts = node_arguments(node)
    # Sorts that Spark puts in for joins and windows are not global.
    if len(parts) > 1 and parts[1] == "true":
        scope.decide(parts[0], "SORT")


def _take_ordered(node: Node, scope: Scope, _below: list[Scope]) -> None:
    lists = [part for part in node_arguments(node) if part.startswith("[")]
    if lists:
        scope.decide(lists[0], "SORT")
    if len(lists) > 1:
        project(Node(0, ""), "", lists[1], scope)


def _window(node: Node, scope: Scope, _below: list[Scope]) -> None:
    for element in attributes(node_arguments(node)[0]):
        scope.define_as(element, IDENTITY if _OFFSETS.match(element.expression or "") else AGGREGATION)
        scope.output.append(element.id)


def _deduplicate(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``[keys], state info […]``: which rows there are depends on them."""
    keys, *_ = node_arguments(node)
    scope.decide(keys, "GROUP_BY")


def _unknown(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """Read an operator that no rule knows: all columns that it is given may decide on all that it gives out."""
    scope.unread.append(kind_of(node.name))
    scope.dataset_wide |= scope.all_of(scope.output, _UNKNOWN)
    parts = node_arguments(node)
    lists = [element for part in parts for element in attributes(part)]
    given_out: list[Defined] = lists or [element for part in parts if (element := defined(part))]
    new = {element.id: element for element in given_out if element.id not in scope.names}
    for element in new.values():
        scope.define(element.id, element.name, ())
    # What it passes on is known where an operator above names it.
    scope.output = list(new)


_BY_KIND: dict[str, Callable[[Node, Scope, list[Scope]], None]] = {
    "AggregateInPandas": plan_python.aggregate,
    "AppendColumns": plan_python.keyed,
    "AppendColumnsWithObject": plan_python.keyed,
    "ArrowAggregatePython": plan_python.aggregate,
    "ArrowEvalPython": plan_python.results,
    "ArrowEvalPythonUDTF": plan_python.table_function,
    "ArrowWindowPython": _window,
    "AttachDistributedSequence": plan_python.number,
    "BatchEvalPython": plan_python.results,
    "BatchEvalPythonUDTF": plan_python.table_function,
    "CartesianProduct": _join,
    "CoGroup": plan_python.objects,
    "Deduplicate": _deduplicate,
    "DeserializeToObject": plan_python.objects,
    "Distinct": _distinct,
    "Expand": plan_multiplied.expand,
    "Filter": _filter,
    "FlatMapCoGroupsInArrow": plan_python.over_rows,
    "FlatMapCoGroupsInPandas": plan_python.over_rows,
    "FlatMapGroupsInArrow": plan_python.over_rows,
    "FlatMapGroupsInPandas": plan_python.over_rows,
    "FlatMapGroupsInPandasWithState": plan_python.over_rows,
    "FlatMapGroupsInR": plan_python.objects,
    "FlatMapGroupsInRWithArrow": plan_python.objects,
    "FlatMapGroupsWithState": plan_python.objects,
    "Generate": plan_multiplied.generate,
    "HiveScriptTransformation": plan_python.script,
    "InMemoryRelation": _cache,
    "InMemoryTableScan": _select,
    "MapElements": plan_python.objects,
    "MapGroups": plan_python.objects,
    "MapInArrow": plan_python.over_rows,
    "MapInPandas": plan_python.over_rows,
    "MapPartitions": plan_python.objects,
    "MapPartitionsInRWithArrow": plan_python.objects,
    "MergeRows": plan_multiplied.merge_rows,
    "Project": _select,
    "PythonMapInArrow": plan_python.over_rows,
    # A cached table that has a name.
    "Scan": _select,
    "SerializeFromObject": plan_python.objects,
    "SparkScriptTransformation": plan_python.script,
    "StreamingDeduplicate": _deduplicate,
    "StreamingDeduplicateWithinWatermark": _deduplicate,
    "Sort": _sort,
    "TakeOrderedAndProject": _take_ordered,
    "TransformWithState": plan_python.objects,
    "TransformWithStateInPandas": plan_python.over_rows,
    "TransformWithStateInPySpark": plan_python.over_rows,
    "Union": _unite,
    "UnionLoop": _loop,
    "Window": _window,
    "WindowInPandas": _window,
}
