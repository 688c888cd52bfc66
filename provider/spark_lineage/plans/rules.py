"""What each kind of operator does to the columns that it is given, a rule a kind (``org.apache.spark.sql.execution``).

A rule finds in its scope what the children give out, in order, and leaves there what the operator gives out. Operators
that run functions which a plan cannot look into (Python's, scripts', those of typed Datasets) may make each column from
all that they are given; what rows are grouped by decides which of them are given together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.plans.plan import Node, arguments, elements
from spark_lineage.plans.scope import (
    AGGREGATION,
    GROUPED,
    NOTHING,
    TRANSFORMATION,
    Defined,
    Scope,
    Sources,
    attributes,
    defined,
    given_out_of,
    listed_by,
    project,
)

# Of the functions of a window these pass values on; all others are aggregates.
_OFFSETS = re.compile(r"(?:lag|lead|nth_value|row_number|rank|dense_rank|percent_rank|cume_dist|ntile)\(")
# RewriteExceptAll and RewriteIntersectAll of Spark's optimizer mark the rows of each side.
_COUNTED = re.compile(r"\[(?:-1 AS vcol|null AS vcol1)#\d+")
_UNKNOWN = Transformation("INDIRECT", "UNKNOWN")

_PARTIAL = re.compile(r"(?:partial|merge)_")
_FILTER = " FILTER (WHERE "
_PIVOT = "pivotfirst("
# Another aggregate, carried through the grouping that a DISTINCT needs (RewriteDistinctAggregates).
_BESIDE_DISTINCT = re.compile(r"first\(\w+\(.*\)#\d+L?, true\)")
_DISTINCT_GROUP = re.compile(r"gid#\d+")
_FUNCTION = re.compile(
    r"\b(?:sum|avg|count|min|max|first|last|collect_list|collect_set|\w*stddev\w*|\w*percentile\w*)\("
)
_MERGE_CONTEXTS = frozenset({"Copy", "Delete", "Insert", "Update"})
_STRUCT = re.compile(r"(?:named_)?struct\((.*)\)", re.DOTALL)
# f(k#1, v#2)#3: a function has the id of what it gives back.
_CALL = re.compile(r"[^\[].*\(.*\)#\d+L?", re.DOTALL)


def _distinct(_node: Node, scope: Scope) -> None:
    scope.dataset_wide |= scope.all_of(scope.output, GROUPED)
    scope.output = list(scope.below[0].output)


def rename(scope: Scope, given_out: Sequence[Defined], below: Scope) -> None:
    """Give out what another operator does under other ids, by position: caches, reused exchanges."""
    scope.dataset_wide |= below.decisions
    scope.unread += below.unread
    scope.is_whole &= below.is_whole
    for attribute, identity in zip(given_out, below.output, strict=False):
        scope.define(attribute.id, attribute.name, below.sources[identity])
    scope.pass_on(given_out)


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
    existence = re.fullmatch(r"ExistenceJoin\((?P<name>.*#\d+)\)", kind)
    if existence or kind in {"LeftSemi", "LeftAnti"}:
        scope.output = list(scope.below[0].output)
    if existence:
        scope.give_out(attributes(f"[{existence['name']}]"))


def _sort(node: Node, scope: Scope) -> None:
    # Sorts that Spark puts in for joins and windows are not global.
    if node.arguments[1:2] == ["true"]:
        scope.decide(node.arguments[0], "SORT")


def _take_ordered(node: Node, scope: Scope) -> None:
    for order in node.lists[:1]:
        scope.decide(order, "SORT")
    for output in node.lists[1:2]:
        project(node, "", scope, output)


def _window(node: Node, scope: Scope) -> None:
    for element in attributes(node.arguments[0]):
        scope.define_as(element, IDENTITY if _OFFSETS.match(element.expression or "") else AGGREGATION)
        scope.output.append(element.id)


def unknown(node: Node, scope: Scope) -> None:
    """Read an operator that no rule knows: all columns that it is given may decide on all that it gives out."""
    scope.dataset_wide |= scope.all_of(scope.output, _UNKNOWN)
    # What it passes on is known where an operator above names it.
    scope.output = []
    scope.give_out(_new(node, scope))


def aggregate(node: Node, scope: Scope) -> None:
    """Give out the keys and what the functions of an aggregate make; its first step gives out buffers."""
    if "Arguments" in node.fields:
        _logical_aggregate(node, scope)
        return
    functions = elements(node.fields.get("Functions", ""))
    keys = elements(node.fields.get("Keys", ""))
    if any("(distinct " in function for function in functions):
        scope.grouped.clear()
    # Several DISTINCTs have ids of their groups, which are grouped by too.
    is_step = any(_DISTINCT_GROUP.fullmatch(key) for key in keys)
    for key in () if is_step else keys:
        scope.define_as(defined(key))
        scope.grouped |= scope.deciding(key, "GROUP_BY")
    for place, function in _numbered(functions):
        if condition := _parted(function)[1]:
            scope.filters[place] = scope.deciding(condition, "CONDITIONAL")
    if any(_PARTIAL.match(function) for function in functions):
        # The final aggregate names the columns themselves again.
        return
    results = node.fields.get("Results", "")
    given = elements(node.fields.get("Aggregate Attributes", ""))
    for (place, function), element in zip(_numbered(functions), given, strict=False):
        if attribute := defined(element):
            scope.define(attribute.id, "", _aggregated(function, scope) | scope.filters.get(place, NOTHING))
            # Its name repeats the function with the attributes in it.
            results = results.replace(element, f"#{attribute.id}")
            if _BESIDE_DISTINCT.match(function):
                # Spark's own: what an aggregate gives for no rows.
                results = re.sub(rf"coalesce\(#{attribute.id}, [^(),]*\)", f"#{attribute.id}", results)
    project(node, "Results", scope, results)


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
    """Return what an aggregate is made from; ``pivotfirst(k#1, v#2, a, b)`` picks the values of ``v`` by ``k``."""
    if not function.startswith(_PIVOT):
        return scope.made_from(function, AGGREGATION)
    key, value, *_ = arguments(function.removeprefix(_PIVOT))
    return scope.made_from(value, AGGREGATION) | scope.deciding(key, "CONDITIONAL")


def _logical_aggregate(node: Node, scope: Scope) -> None:
    """``[keys], [results]``, of a logical plan: the functions are inside of the results."""
    keys, results, *_ = *node.arguments, ""
    scope.grouped |= scope.deciding(keys, "GROUP_BY")
    given_out = given_out_of(elements(results), scope)
    for element in given_out:
        scope.define_as(element, AGGREGATION if _FUNCTION.search(element.expression or "") else IDENTITY)
    scope.output = [element.id for element in given_out]


def _generate(node: Node, scope: Scope) -> None:
    """``explode(arr#2), [id#1], false, [e#3]``: the generator, what is kept of a row if anything, what is generated."""
    generator, *between, last = node.arguments
    generated = attributes(last)
    if "false" in between and generator.startswith(("explode(", "posexplode(")):
        # It is not outer: a row without elements gives none.
        scope.decide(generator, "FILTER")
    by_position = [
        NOTHING.union(*(scope.made_from(value, how) for value in values))
        for values, how in _generated_from(generator, len(generated))
    ]
    scope.pass_on(attributes(next((part for part in between if part.startswith("[")), "[]")))
    for element, sources in zip(generated, by_position, strict=True):
        scope.give_out([element], sources)


def _generated_from(generator: str, count: int) -> list[tuple[Sequence[str], Transformation]]:
    """Return the expressions that each generated column has its values from, and how.

    ``stack(2, a#1, b#2, c#3, d#4)`` has rows, ``inline(array(struct(x, a#1, y, b#2)))`` fields by their names;
    ``replicaterows(n#1, a#2, b#3)`` repeats rows. Others make all columns from all that they are given.
    """
    name, _, rest = generator.partition("(")
    given = arguments(rest.removesuffix(")"))
    if name == "replicaterows" and len(given) == count + 1:
        return [([value], IDENTITY) for value in given[1:]]
    if name == "stack" and given[0].isdigit() and len(given) - 1 in {int(given[0]) * count, int(given[0]) * count - 1}:
        return [(given[1:][position::count], TRANSFORMATION) for position in range(count)]
    structs = arguments(given[0].removeprefix("array(").removesuffix(")")) if name == "inline" else []
    fields = [arguments(match[1])[1::2] for struct in structs if (match := _STRUCT.fullmatch(struct))]
    if fields and len(fields) == len(structs) and all(len(each) == count for each in fields):
        return [(values, TRANSFORMATION) for values in zip(*fields, strict=True)]
    return [([generator], TRANSFORMATION)] * count


def _expand(node: Node, scope: Scope) -> None:
    """``[[k#1, null, 0], [k#1, s#2, 1]], [k#5, s#6, gid#4]``: each projection makes a row of each row."""
    projections, *_, given_out = node.arguments
    _give_out_rows(scope, attributes(given_out), [elements(projection) for projection in elements(projections)])


def _merge_rows(node: Node, scope: Scope) -> None:
    """``…, [keep(Update, condition, values…), …], …, [outputs]``: each instruction gives values for all outputs.

    Before Spark 4.1 an instruction has no context in front. ``split`` gives values for two rows (``MergeRows``).
    """
    *parts, outputs = node.arguments
    given_out = attributes(outputs)
    values: list[list[str]] = []
    for instruction in (each for part in parts for each in elements(part)):
        words = arguments(instruction.partition("(")[2].removesuffix(")"))
        condition, *rest = words[1:] if words[0] in _MERGE_CONTEXTS else words
        scope.decide(condition, "JOIN")
        values += (rest[start : start + len(given_out)] for start in range(0, len(rest), max(len(given_out), 1)))
    _give_out_rows(scope, given_out, values)


def _give_out_rows(scope: Scope, given_out: Iterable[Defined], rows: Sequence[Sequence[str]]) -> None:
    """Give out columns that each row has expressions of its own for, by position."""
    known = Scope(dict(scope.names), dict(scope.sources))
    scope.output = []
    for position, element in enumerate(given_out):
        columns = (known.made_from(each[position]) for each in rows if position < len(each))
        scope.give_out([element], NOTHING.union(*columns))


def _results(node: Node, scope: Scope) -> None:
    """``[f(v#1)#10], [pythonUDF0#12]``: the results come behind what is there."""
    functions, named, *_ = *node.arguments, ""
    for function, element in zip(elements(functions), attributes(named), strict=False):
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
        named = second_id.sub(r"\1", named)
    project(node, "", scope, named)


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


def _keyed(node: Node, scope: Scope) -> None:
    """``f, obj, [key#3]``: typed code computes a key for each row, behind its columns."""
    scope.give_out(_new(node, scope), scope.all_of(scope.output))


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


Rule = Callable[[Node, Scope], None]
_RULES: tuple[tuple[Rule, str], ...] = (
    (aggregate, "Aggregate HashAggregate MergingSessions ObjectHashAggregate SortAggregate"),
    (_expand, "Expand"),
    (_generate, "Generate"),
    (_merge_rows, "MergeRows"),
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
_OF_FUNCTIONS: tuple[tuple[Rule, str], ...] = (
    (_python_aggregate, "AggregateInPandas ArrowAggregatePython"),
    (_keyed, "AppendColumns AppendColumnsWithObject"),
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
RULES = FUNCTIONS | {kind: rule for rule, kinds in _RULES for kind in kinds.split()}
