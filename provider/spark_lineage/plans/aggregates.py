"""What operators do to columns that make one row of several, or several of one.

Aggregates (partial and final steps, those of a DISTINCT, those of logical plans), generators, grouping sets, merges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.plans.plan import Node, arguments, elements
from spark_lineage.plans.scope import (
    AGGREGATION,
    NOTHING,
    TRANSFORMATION,
    Defined,
    Scope,
    Sources,
    attributes,
    defined,
    given_out_of,
    project,
)

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


def aggregate(node: Node, scope: Scope) -> None:
    """Give out the keys and what the functions of an aggregate make; its first step gives out buffers."""
    if "Arguments" in node.fields:
        _logical_aggregate(node, scope)
        return
    functions = elements(node.fields.get("Functions", ""))
    keys = elements(node.fields.get("Keys", ""))
    if any("(distinct " in function for function in functions):
        scope.grouped.clear()
    # Several DISTINCTs are told apart by the id of their group, which is grouped by too.
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


def generate(node: Node, scope: Scope) -> None:
    """``explode(arr#2), [id#1], false, [e#3]``: the generator, what is kept of a row if anything, what is generated."""
    generator, *between, last = node.arguments
    kept = next((part for part in between if part.startswith("[")), "[]")
    generated = attributes(last)
    if "false" in between and generator.startswith(("explode(", "posexplode(")):
        # It is not outer: a row without elements gives none.
        scope.decide(generator, "FILTER")
    by_position = [
        NOTHING.union(*(scope.made_from(value, how) for value in values))
        for values, how in _generated_from(generator, len(generated))
    ]
    scope.pass_on(attributes(kept))
    for element, sources in zip(generated, by_position, strict=True):
        scope.give_out([element], sources)


def _generated_from(generator: str, count: int) -> list[tuple[Sequence[str], Transformation]]:
    """Return the expressions that each generated column has its values from, and how.

    ``stack(2, a#1, b#2, c#3, d#4)`` tells rows, ``inline(array(struct(x, a#1, y, b#2)))`` fields by their names;
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
        return [([each[position] for each in fields], TRANSFORMATION) for position in range(count)]
    return [([generator], TRANSFORMATION)] * count


def expand(node: Node, scope: Scope) -> None:
    """``[[k#1, null, 0], [k#1, s#2, 1]], [k#5, s#6, gid#4]``: each projection makes a row of each row."""
    projections, *_, given_out = node.arguments
    _give_out_rows(scope, attributes(given_out), [elements(projection) for projection in elements(projections)])


def merge_rows(node: Node, scope: Scope) -> None:
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
