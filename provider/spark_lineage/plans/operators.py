"""Traces the columns of a plan back to what it reads, by the ids of its attributes and what each operator does to them.

An operator gives out attributes; each has the columns that it was made from. Ids mean one thing in a plan, but for
those of a union, which are the ids of its first child: what an operator gives out is therefore added to what those
below it gave, from the leaves up (``org.apache.spark.sql.execution``).

There is a rule for each kind of operator: it finds in its scope what the children give out, in order, and leaves there
what the operator gives out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.plans.aggregates import AGGREGATES, ORDER_END
from spark_lineage.plans.expressions import AGGREGATION, GROUPED
from spark_lineage.plans.functions import FUNCTIONS, unknown
from spark_lineage.plans.generators import GENERATORS
from spark_lineage.plans.lists import UNKNOWN_NAME, Defined, attributes, elements, outputs
from spark_lineage.plans.names import ATTRIBUTE, NAME, SUBQUERY, hidden, shown
from spark_lineage.plans.plan import GIVEN, STRUCT, Node, Plan
from spark_lineage.plans.scope import (
    NOTHING,
    USED,
    Column,
    Read,
    Rule,
    Scope,
    Sources,
    Traced,
    give_out_list,
    given_out_by,
    project,
)

# These functions of a window pass values on; all others are aggregates.
_OFFSETS = re.compile(r"(?:lag|lead|nth_value|row_number|rank|dense_rank|percent_rank|cume_dist|ntile)\(")
# RewriteExceptAll and RewriteIntersectAll of Spark's optimizer mark the rows of each side.
_COUNTED = re.compile(rf"\[(?:-1 AS {hidden('vcol')}|null AS {hidden('vcol1')})#\d+")
_EXISTENCE = re.compile(rf"ExistenceJoin\((?P<attribute>{ATTRIBUTE}|\w+#\d+)\)")
_NEXT_ROW = "], ["
_SORT = re.compile(r"(?P<orders>\[.*\]), (?P<is_global>true|false)(?:, \d+)?", re.DOTALL)
_TOP = re.compile(r"(?:\d+, )+(?P<lists>\[.*\])(?:, \d+)?", re.DOTALL)
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
    # A filter of a logical plan has its condition as arguments; the condition of others is read of all operators.
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


Leaf = Callable[[Node], Read]

# So many subqueries of earlier plans are remembered; a stream has new ones in each batch.
_FORMER_MAX = 1000
_SUBQUERY = re.compile(rf"(?={SUBQUERY})(?P<field>{NAME})#(?P<id>\d+)")
# A join prunes partitions by this function.
_PRUNING = "dynamicpruningexpression("


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# They give out what they are given, whatever their arguments say; those of the last lines write it.
_PASSING = _names("""
    AQEShuffleRead AdaptiveSparkPlan BroadcastExchange BroadcastQueryStage Coalesce CollectLimit CollectMetrics
    CollectTail ColumnarToRow CommandResult DeltaInvariantChecker DeltaOptimizedWriter EventTimeWatermark Exchange
    Execute GlobalLimit GroupPartitions InputAdapter LocalLimit OrderAwareCoalesce PythonWorkerLogs RebalancePartitions
    Repartition RepartitionByExpression ResultQueryStage RowToColumnar Sample SessionWindowStateStoreRestore
    SessionWindowStateStoreSave ShuffleQueryStage SkewJoinChildWrapper StateStoreRestore StateStoreSave
    StreamingGlobalLimit StreamingLocalLimit Subquery SubqueryAdaptiveBroadcast SubqueryAlias SubqueryBroadcast
    TableCacheQueryStage UpdateEventTimeColumn UpdatingSessions View WholeStageCodegen WindowGroupLimit WriteFiles
    AppendData AtomicCreateTableAsSelect AtomicReplaceTableAsSelect CreateTableAsSelect OverwriteByExpression
    OverwritePartitionsDynamic ReplaceData ReplaceTableAsSelect WriteDelta WriteToContinuousDataSource
    WriteToDataSourceV2
""")
# Rows are put into buckets by these functions.
_BUCKETS = re.compile(r"\bpmod\((?:collation_aware_)?hash\(")
# A write in partitions makes null of an empty text by this, in a projection of its own (``V1Writes``).
_EMPTY_TO_NULL = re.compile(rf"\bempty2null\({NAME}#(\d+)")
# They need no order of the rows that they are given.
_WITHOUT_ORDER = _names("""
    BroadcastExchange Coalesce Exchange Expand Filter Generate GlobalLimit InMemoryRelation LocalLimit Project Union
""")
# They have no children; ``tables`` knows which dataset they read.
_LEAVES = _names("""
    BatchScan ContinuousScan EmptyRelation FileScan HiveTableRelation InMemoryRelation LocalRelation LocalTableScan
    LogicalRDD LogicalRelation MicroBatchScan OneRowRelation Range RealTimeStreamScan RelationV2 ReusedExchange
    ReusedSubquery ResolvedNamespace ResolvedTable Scan StreamingRelation UnionLoopRef
""")


def kind_of(name: str) -> str:
    """Return the kind of operator that a name begins with: ``Scan`` of ``Scan parquet db.t``."""
    return re.split(r"[ (\[]", name, maxsplit=1)[0]


def trace(
    plan: Plan, leaf: Leaf, former: dict[int, Sources] | None = None, sorted_by: frozenset[int] = frozenset()
) -> Traced:
    """Return the columns of a plan's root with their sources; ``leaf`` returns what a scan reads.

    :param former: the sources of the subqueries of earlier plans of the application, to which those of this are added:
        one that is part of a cache is printed by the plan that was run first
    :param sorted_by: the attributes by which the write at its root has its rows sorted
    """
    tracer = _Tracer(plan, leaf, {} if former is None else former, sorted_by)
    scope = tracer.scope(plan.root)
    columns = tuple(Column(identity, scope.names[identity], scope.sources[identity]) for identity in scope.output)
    if any(column.name == UNKNOWN_NAME for column in columns):
        columns = ()
        scope.unread.append(f"{plan.root.name}: names of its columns")
    unread = tuple(sorted({*plan.unread, *scope.unread, *tracer.subqueries.unread}))
    is_whole = scope.is_whole and tracer.subqueries.is_whole and not unread and bool(columns)
    known = tuple(Column(each, scope.names[each], sources) for each, sources in scope.sources.items() if sources)
    return Traced(columns, scope.decisions, unread, is_whole=is_whole, known=known)


class _Tracer:
    def __init__(self, plan: Plan, leaf: Leaf, former: dict[int, Sources], sorted_by: frozenset[int]) -> None:
        self._leaf = leaf
        self._sorted_by = sorted_by
        self._nodes = {node.number: node for node in plan.walk()}
        self._anchor: list[Sources] = []
        fields = [text for node in plan.walk() for text in node.fields.values()]
        named = {int(found["id"]): shown(found["field"]) for text in fields for found in _SUBQUERY.finditer(text)}
        known = {identity: former[identity] for identity in named.keys() & former.keys()}
        self.subqueries = Scope(dict.fromkeys(known, ""), known)
        # Subqueries inside of others come last.
        for identity, subquery in reversed(plan.subqueries.items()):
            scope = self.scope(subquery)
            # The columns that decide on its rows decide on its value.
            former[identity] = _value(subquery, scope, named.get(identity)) | scope.decisions
            self.subqueries.define(identity, "", former[identity])
            self.subqueries.unread += scope.unread
            self.subqueries.is_whole &= scope.is_whole
        if not named.keys() <= self.subqueries.names.keys():
            # Spark does not print those of cached data.
            self.subqueries.unread.append("a scalar subquery")
        while len(former) > _FORMER_MAX:
            del former[next(iter(former))]

    def scope(self, node: Node) -> Scope:
        """Return what is known above ``node``."""
        scope = Scope(dict(self.subqueries.names), dict(self.subqueries.sources))
        if node.reuses in self._nodes:
            rename(scope, attributes(node.fields.get("Output", "")), self.scope(self._nodes[node.reuses]))
            return scope
        for child in node.planned:
            scope.add(self.scope(child))
            if kind_of(node.name) == "UnionLoop" and not self._anchor:
                # The rows that its step reads as UnionLoopRef begin with those of its anchor, the first child.
                self._anchor = [scope.sources[identity] for identity in scope.output]
        if not scope.below:
            read = Read(self._anchor, is_whole=True) if kind_of(node.name) == "UnionLoopRef" else self._leaf(node)
            scope.is_whole &= read.is_whole
            scope.dataset_wide |= read.deciding
            scope.unread += read.unread
            for position, attribute in enumerate(given_out_by(node)):
                scope.give_out([attribute], read.columns[position] if position < len(read.columns) else NOTHING)
        for child in node.children:
            if kind_of(child.name) == "Sort" and is_local_sort(child) and self._is_of_user(child, node):
                scope.decide(child.fields.get("Arguments", ""), "SORT")
        _apply(node, scope)
        return scope

    def _is_of_user(self, sort: Node, above: Node) -> bool:
        """Whether a sort within partitions is none that the operator above it needs."""
        orders = sort.fields.get("Arguments", "")
        texts = {int(match[1]) for match in _EMPTY_TO_NULL.finditer(above.made)}
        if not texts and kind_of(above.name) != "WriteFiles":
            return kind_of(above.name) in _WITHOUT_ORDER
        is_of_partitions = {int(match[1]) for match in USED.finditer(orders)} <= self._sorted_by | texts
        return not is_of_partitions and _BUCKETS.search(orders) is None


def _value(subquery: Node, scope: Scope, name: str | None) -> Sources:
    """Return what a scalar subquery gives: its only column, or a field of that where Spark has merged several."""
    if not scope.output:
        return NOTHING
    for struct in filter(None, (STRUCT.search(node.made) for node in subquery.walk()) if name else ()):
        fields = zip(re.split(ATTRIBUTE, struct["fields"]), re.findall(ATTRIBUTE, struct["fields"]), strict=False)
        for field, value in fields:
            if field.strip(", ") == name:
                return scope.made_from(value)
    return scope.sources[scope.output[0]]


def _apply(node: Node, scope: Scope) -> None:
    """Change ``scope``, which holds what the children give out, to what ``node`` gives out."""
    kind = kind_of(node.name)
    # A sort within partitions is mostly there for the operator above.
    if kind not in _PASSING and not (kind == "Sort" and is_local_sort(node)):
        rule = RULES.get(kind, unknown)
        if kind not in AGGREGATES:
            scope.dataset_wide |= scope.grouped
            scope.grouped.clear()
        if kind not in (RULES if scope.below else _LEAVES):
            scope.unread.append(kind)
        if scope.below:
            rule(node, scope)
    elif kind in _PASSING and scope.unread and not scope.output:
        # It says what the operator below it, which no rule reads, gives out.
        scope.pass_on(attributes(node.fields.get("Input", "")))
    scope.decide(node.fields.get("Condition", ""), "FILTER")
    for condition in elements(node.fields.get("PartitionFilters", "")):
        if not condition.startswith(_PRUNING):
            scope.decide(condition, "FILTER")
