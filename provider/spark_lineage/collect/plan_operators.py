"""What each operator of a physical plan does to the columns that it is given (``org.apache.spark.sql.execution``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from spark_lineage.collect.plan import Node
from spark_lineage.collect.plan_expressions import (
    AGGREGATION,
    IDENTITY,
    TRANSFORMATION,
    Defined,
    arguments,
    defined,
    elements,
    references,
)
from spark_lineage.merge.composition import compose
from spark_lineage.merge.lineage import Transformation
from spark_lineage.naming.identity import DatasetName

# A column of a dataset, and how it was used.
Source = tuple[DatasetName, str, Transformation]
Sources = frozenset[Source]

_PARTIAL = re.compile(r"(?:partial|merge)_")
_DISTINCT_GROUP = re.compile(r"gid#\d+")
_FUNCTION = re.compile(
    r"\b(?:sum|avg|count|min|max|first|last|collect_list|collect_set|\w*stddev\w*|\w*percentile\w*)\("
)
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
        "ColumnarToRow",
        "EventTimeWatermark",
        "Exchange",
        "Execute",
        "GlobalLimit",
        "LocalLimit",
        "ResultQueryStage",
        "RowToColumnar",
        "Sample",
        "ShuffleQueryStage",
        "StateStoreSave",
        "StateStoreRestore",
        "Subquery",
        "SubqueryAlias",
        "SubqueryBroadcast",
        "TableCacheQueryStage",
        "Tail",
        "View",
        "WindowGroupLimit",
        "WriteFiles",
    }
)


@dataclass
class Scope:
    """What is known above an operator: by id the name and sources of each attribute, in order those it gives out."""

    names: dict[int, str] = field(default_factory=dict)
    sources: dict[int, Sources] = field(default_factory=dict)
    output: list[int] = field(default_factory=list)
    dataset_wide: set[Source] = field(default_factory=set)
    """What decided on the rows: filters, joins, groupings, orders."""
    grouped: set[Source] = field(default_factory=set)
    """What the aggregates directly below group by, which may be but a step to a ``DISTINCT`` of the one above."""

    def add(self, below: Scope) -> None:
        """Put what a child gives out behind what the others do."""
        self.names |= below.names
        self.sources |= below.sources
        self.output += below.output
        self.dataset_wide |= below.dataset_wide
        self.grouped |= below.grouped

    def define(self, identity: int, name: str, sources: Iterable[Source]) -> None:
        """Make an attribute known."""
        self.names[identity] = name
        self.sources[identity] = frozenset(sources)

    def define_as(self, element: Defined | None, how: Transformation = IDENTITY) -> None:
        """Make an attribute known by the expression that it is an alias of, if it is one."""
        if element is not None and element.expression is not None:
            self.define(element.id, element.name, self.made_from(element.expression, how))

    def made_from(self, expression: str, how: Transformation = IDENTITY) -> Sources:
        """Give the columns that an expression is made from."""
        return frozenset(
            (dataset, column, compose(how, compose(reference.how, made)))
            for reference in references(expression, self.names)
            for dataset, column, made in self.sources[reference.id]
        )

    def decide(self, expression: str, subtype: str) -> None:
        """Note that an expression decided on the rows."""
        self.dataset_wide.update(self.deciding(expression, subtype))

    def deciding(self, expression: str, subtype: str) -> Iterator[Source]:
        """Give the columns of an expression that decided on the rows; what came out of a window says so."""
        how = Transformation("INDIRECT", subtype)
        for reference in references(expression, self.names):
            for dataset, column, made in self.sources[reference.id]:
                yield dataset, column, compose(how, made)

    @property
    def decisions(self) -> Sources:
        """All that decided on the rows, groupings too."""
        return frozenset(self.dataset_wide | self.grouped)


def attributes(text: str) -> list[Defined]:
    """The elements of a list that are attributes or aliases."""
    return [each for element in elements(text) if (each := defined(element))]


def given_out_by(leaf: Node) -> list[Defined]:
    """What a leaf gives out; a relation of a logical plan has it among its arguments."""
    if "Output" in leaf.fields:
        return attributes(leaf.fields["Output"])
    return [each for part in arguments(leaf.fields.get("Arguments", "")) for each in attributes(part)]


def apply(node: Node, scope: Scope, below: list[Scope]) -> None:
    """Change ``scope``, which holds what the children give out, to what ``node`` gives out."""
    kind = node.name.split(" ", 1)[0]
    if kind.endswith("Aggregate"):
        _aggregate(node, scope, below)
    elif kind not in _PASSING:
        scope.dataset_wide |= scope.grouped
        scope.grouped.clear()
        if kind.endswith("Join"):
            _join(node, scope, below)
        else:
            _BY_KIND.get(kind, _other)(node, scope, below)
    scope.decide(node.fields.get("Condition", ""), "FILTER")
    for condition in elements(node.fields.get("PartitionFilters", "")):
        if not condition.startswith(_PRUNING):
            scope.decide(condition, "FILTER")


def _other(node: Node, scope: Scope, _below: list[Scope]) -> None:
    if "Output" in node.fields:
        _project(node, "Output", node.fields["Output"], scope)
    elif node.name == "Project":
        # Of a logical plan, as commands hold it.
        _project(node, "", node.fields.get("Arguments", ""), scope)
    elif node.name == "Filter":
        scope.decide(node.fields.get("Arguments", ""), "FILTER")
    else:
        _compute(node.fields.get("Arguments", ""), scope)


def _cache(node: Node, scope: Scope, below: list[Scope]) -> None:
    rename(scope, attributes(_arguments(node)[0]), below[0])


def rename(scope: Scope, given_out: list[Defined], below: Scope) -> None:
    """Give out what another operator does under other ids, by position: caches, reused exchanges."""
    scope.dataset_wide |= below.decisions
    for attribute, identity in zip(given_out, below.output, strict=False):
        scope.define(attribute.id, attribute.name, below.sources[identity])
    scope.output = [attribute.id for attribute in given_out if attribute.id in scope.names]


def _unite(_node: Node, scope: Scope, below: list[Scope]) -> None:
    """Give out the columns of all children by position, under the ids of the first (``UnionExec.output``)."""
    scope.output = list(below[0].output)
    for position, identity in enumerate(scope.output):
        columns = (child.sources[child.output[position]] for child in below if position < len(child.output))
        scope.define(identity, scope.names[identity], frozenset().union(*columns))


def _given_out(output: str, scope: Scope) -> list[Defined]:
    """The elements of a list of attributes and aliases; what is neither is part of the next: literals hold commas."""
    found: list[Defined] = []
    pending = ""
    for part in elements(output):
        pending += part
        element = defined(pending)
        if element and (element.expression is not None or scope.names.get(element.id) == element.name):
            found.append(element)
            pending = ""
        else:
            pending += ", "
    return found


def _project(node: Node, name: str, output: str, scope: Scope) -> None:
    given_out = _given_out(output, scope)
    if len(given_out) != node.sizes.get(name, len(given_out)):
        # A name or literal with a lone bracket: better no columns than wrong ones.
        scope.output = []
        return
    known = Scope(dict(scope.names), dict(scope.sources))
    for element in given_out:
        if element.expression is not None:
            scope.define(element.id, element.name, known.made_from(element.expression))
    scope.output = [element.id for element in given_out if element.id in scope.names]


def _aggregate(node: Node, scope: Scope, _below: list[Scope]) -> None:
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
    if is_partial:
        # What it gives out are buffers; the final aggregate names the columns themselves again.
        return
    for function, element in zip(functions, elements(node.fields.get("Aggregate Attributes", "")), strict=False):
        if attribute := defined(element):
            scope.define(attribute.id, "", scope.made_from(function, AGGREGATION))
            # Its name repeats the function with the attributes in it.
            results = results.replace(element, f"#{attribute.id}")
    _project(node, "Results", results, scope)


def _logical_aggregate(node: Node, scope: Scope) -> None:
    """``[keys], [results]``, of a logical plan: the functions are inside of the results."""
    keys, results, *_ = *_arguments(node), "", ""
    scope.grouped.update(scope.deciding(keys, "GROUP_BY"))
    given_out = _given_out(results, scope)
    for element in given_out:
        scope.define_as(element, AGGREGATION if _FUNCTION.search(element.expression or "") else IDENTITY)
    scope.output = [element.id for element in given_out]


def _join(node: Node, scope: Scope, below: list[Scope]) -> None:
    # A logical join has its type and condition as arguments.
    for name in ("Left keys", "Right keys", "Join condition", "Arguments"):
        scope.decide(node.fields.get(name, ""), "JOIN")
    kind = node.fields.get("Join type", _arguments(node)[0])
    if kind in {"LeftSemi", "LeftAnti"}:
        scope.output = list(below[0].output)
    elif existence := re.fullmatch(r"ExistenceJoin\((?P<name>.*)#(?P<id>\d+)\)", kind):
        scope.output = [*below[0].output, int(existence["id"])]
        scope.define(int(existence["id"]), existence["name"], ())


def _sort(node: Node, scope: Scope, _below: list[Scope]) -> None:
    parts = _arguments(node)
    # Sorts that Spark puts in for joins and windows are not global.
    if len(parts) > 1 and parts[1] == "true":
        scope.decide(parts[0], "SORT")


def _take_ordered(node: Node, scope: Scope, _below: list[Scope]) -> None:
    lists = [part for part in _arguments(node) if part.startswith("[")]
    if lists:
        scope.decide(lists[0], "SORT")
    if len(lists) > 1:
        _project(Node(0, ""), "", lists[1], scope)


def _window(node: Node, scope: Scope, _below: list[Scope]) -> None:
    for element in attributes(_arguments(node)[0]):
        scope.define_as(element, IDENTITY if _OFFSETS.match(element.expression or "") else AGGREGATION)
        scope.output.append(element.id)


def _generate(node: Node, scope: Scope, _below: list[Scope]) -> None:
    parts = _arguments(node)
    # The generator, what is kept if anything is, whether it is outer, and what is generated.
    kept = next((part for part in parts[1:-1] if part.startswith("[")), "[]")
    sources = scope.made_from(parts[0], TRANSFORMATION)
    scope.output = [element.id for element in attributes(kept) if element.id in scope.names]
    for element in attributes(parts[-1]):
        scope.define(element.id, element.name, sources)
        scope.output.append(element.id)


def _expand(node: Node, scope: Scope, _below: list[Scope]) -> None:
    parts = _arguments(node)
    projections = [elements(projection) for projection in elements(parts[0])]
    known = Scope(dict(scope.names), dict(scope.sources))
    scope.output = []
    for position, element in enumerate(attributes(parts[-1])):
        columns = (known.made_from(each[position]) for each in projections if position < len(each))
        scope.define(element.id, element.name, frozenset().union(*columns))
        scope.output.append(element.id)


def _deduplicate(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``[keys], state info […]``: which rows there are depends on them."""
    keys, *_ = _arguments(node)
    scope.decide(keys, "GROUP_BY")


def _merge_rows(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``…, [keep(Update, condition, values…), …], …, [outputs]``: each instruction gives values for all outputs."""
    *parts, outputs = _arguments(node)
    told = [
        (each.startswith("discard"), arguments(each.partition("(")[2].removesuffix(")")))
        for part in parts
        for each in elements(part)
    ]
    for is_discarding, words in told:
        for condition in words[:1] if is_discarding else words[1:2]:
            scope.decide(condition, "JOIN")
    instructions = [words[2:] for is_discarding, words in told if not is_discarding]
    known = Scope(dict(scope.names), dict(scope.sources))
    scope.output = []
    for position, element in enumerate(attributes(outputs)):
        values = (known.made_from(each[position]) for each in instructions if position < len(each))
        scope.define(element.id, element.name, frozenset().union(*values))
        scope.output.append(element.id)


def _python(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``[f(v#1)#10], [pythonUDF0#12]``: the results of Python functions come behind what is there."""
    parts = _arguments(node)
    results = attributes(parts[1]) if len(parts) > 1 else []
    for function, element in zip(elements(parts[0]), results, strict=False):
        scope.define(element.id, element.name, scope.made_from(function, TRANSFORMATION))
        scope.output.append(element.id)


def _compute(text: str, scope: Scope) -> None:
    """An operator that nothing is known of: what it gives out may be made from all that its arguments name, or all."""
    sources = scope.made_from(text, TRANSFORMATION)
    if not sources:
        everything: Iterator[Sources] = (scope.sources[identity] for identity in scope.output)
        sources = frozenset(
            (dataset, column, compose(TRANSFORMATION, how)) for each in everything for dataset, column, how in each
        )
    parts = arguments(text)
    lists = [element for part in parts for element in attributes(part)]
    given_out = lists or [element for part in parts if (element := defined(part))]
    new = {element.id: element for element in given_out if element.id not in scope.names}
    for element in new.values():
        scope.define(element.id, element.name, sources)
    if new:
        scope.output = list(new)


def _arguments(node: Node) -> list[str]:
    return arguments(node.fields.get("Arguments", ""))


_BY_KIND: dict[str, Callable[[Node, Scope, list[Scope]], None]] = {
    "ArrowEvalPython": _python,
    "BatchEvalPython": _python,
    "CartesianProduct": _join,
    "Expand": _expand,
    "Generate": _generate,
    "InMemoryRelation": _cache,
    "MergeRows": _merge_rows,
    "StreamingDeduplicate": _deduplicate,
    "StreamingDeduplicateWithinWatermark": _deduplicate,
    "Sort": _sort,
    "TakeOrderedAndProject": _take_ordered,
    "Union": _unite,
    "Window": _window,
}
