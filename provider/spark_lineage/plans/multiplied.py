"""What operators do to columns that make several rows of one, or one of several: generators, grouping sets, merges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spark_lineage.merge.lineage import Transformation
from spark_lineage.plans.expressions import IDENTITY, TRANSFORMATION, Defined, arguments, elements
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import Scope, attributes, node_arguments

_MERGE_CONTEXTS = frozenset({"Copy", "Delete", "Insert", "Update"})
_STRUCT = re.compile(r"(?:named_)?struct\((.*)\)", re.DOTALL)


def generate(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``explode(arr#2), [id#1], false, [e#3]``: what is kept of a row, and what is made from it."""
    parts = node_arguments(node)
    # The generator, what is kept if anything is, whether it is outer, and what is generated.
    kept = next((part for part in parts[1:-1] if part.startswith("[")), "[]")
    generated = attributes(parts[-1])
    if "false" in parts[1:-1] and parts[0].startswith(("explode(", "posexplode(")):
        # It is not outer: a row without elements gives none.
        scope.decide(parts[0], "FILTER")
    by_position = [
        frozenset().union(*(scope.made_from(value, how) for value in values))
        for values, how in _generated_from(parts[0], len(generated))
    ]
    scope.output = [element.id for element in attributes(kept) if element.id in scope.names]
    for element, sources in zip(generated, by_position, strict=True):
        scope.give_out(element, sources)


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


def expand(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``[[k#1, null, 0], [k#1, s#2, 1]], [k#5, s#6, gid#4]``: each projection makes a row of each row."""
    parts = node_arguments(node)
    projections = [elements(projection) for projection in elements(parts[0])]
    _give_out_rows(scope, attributes(parts[-1]), projections)


def merge_rows(node: Node, scope: Scope, _below: list[Scope]) -> None:
    """``…, [keep(Update, condition, values…), …], …, [outputs]``: each instruction gives values for all outputs.

    Before Spark 4.1 an instruction has no context in front. ``split`` gives values for two rows (``MergeRows``).
    """
    *parts, outputs = node_arguments(node)
    given_out = attributes(outputs)
    values: list[list[str]] = []
    for instruction in (each for part in parts for each in elements(part)):
        words = arguments(instruction.partition("(")[2].removesuffix(")"))
        condition, *rest = words[1:] if words[0] in _MERGE_CONTEXTS else words
        scope.decide(condition, "JOIN")
        values += (rest[start : start + len(given_out)] for start in range(0, len(rest), max(len(given_out), 1)))
    _give_out_rows(scope, given_out, values)


def _give_out_rows(scope: Scope, given_out: Iterable[Defined], rows: Sequence[Sequence[str]]) -> None:
    """Return out columns that each row has expressions of its own for, by position."""
    known = Scope(dict(scope.names), dict(scope.sources))
    scope.output = []
    for position, element in enumerate(given_out):
        columns = (known.made_from(each[position]) for each in rows if position < len(each))
        scope.give_out(element, frozenset().union(*columns))
