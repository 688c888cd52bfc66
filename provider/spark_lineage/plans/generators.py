"""What makes several rows of one: generators, the rows of Expand (ROLLUP, UNPIVOT), and the clauses of a MERGE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.plans.expressions import TRANSFORMATION
from spark_lineage.plans.functions import unknown
from spark_lineage.plans.lists import PURE_LIST, Defined, arguments, attributes, elements
from spark_lineage.plans.names import ATTRIBUTE
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import NOTHING, Rule, Scope

# Anchored at lists of nothing but attributes, where no literal can be.
_GENERATE = re.compile(
    rf"(?P<generator>.*?)(?:, (?P<kept>{PURE_LIST}))?, (?P<outer>true|false)(?:, \w+)?, (?P<generated>{PURE_LIST})",
    re.DOTALL,
)
_ROWS = re.compile(rf"\[\[(?P<rows>.*)\]\], (?P<given_out>{PURE_LIST})", re.DOTALL)
_NEXT_ROW = "], ["
_STRUCTS = re.compile(r"array\((?:(?:named_)?struct\(|\[)")
# The optimizer makes this of structs of literals: `[x,2.0]`.
_CONSTANT_STRUCTS = re.compile(rf"\), \[(?!.*{ATTRIBUTE}).*\]\Z", re.DOTALL)
_STRUCT = re.compile(r"(?:named_)?struct\((.*)\)", re.DOTALL)
_MERGED = re.compile(
    r".*?, \[(?:\], \[)*(?:(?P<instructions>(?:keep|discard|split)\(.*)\))?\](?:, \[\])*, (?:true|false), "
    r"(?P<outputs>\[[^\[\]]*\])",
    re.DOTALL,
)
# Not outer, they give no row for a value without elements.
_DECIDING = re.compile(r"(?:pos|variant_)?explode\(|inline\((?!array\()")
_INSTRUCTION_END = re.compile(r"\)(?:, |\](?:, \[\])*, \[)(?=(?:keep|discard|split)\()")
_ROWS_OF_INSTRUCTION = {"keep": 1, "discard": 0, "split": 2}
_MERGE_CONTEXTS = frozenset({"Copy", "Delete", "Insert", "Update"})


def _generate(node: Node, scope: Scope) -> None:
    """``explode(arr#2), [id#1], false, [e#3]``: the generator, what is kept of a row if anything, what is generated."""
    found = _GENERATE.fullmatch(node.fields.get("Arguments", ""))
    if found is None:
        unknown(node, scope)
        scope.unread.append(f"{node.name}: its columns")
        return
    generator, generated = found["generator"], attributes(found["generated"])
    if found["outer"] == "false" and _DECIDING.match(generator):
        scope.decide(generator, "FILTER")
    values_by_position = _generated_from(generator, [element.name for element in generated])
    if values_by_position is None:
        scope.unread.append(f"{node.name}: its columns")
    by_position = [
        NOTHING.union(*(scope.made_from(value, how) for value in values))
        for values, how in values_by_position or [((), TRANSFORMATION)] * len(generated)
    ]
    scope.pass_on(attributes(found["kept"] or "[]"))
    for element, sources in zip(generated, by_position, strict=True):
        scope.give_out([element], sources)


def _generated_from(generator: str, names: Sequence[str]) -> list[tuple[Sequence[str], Transformation]] | None:
    """Return the expressions that each generated column has its values from, and how.

    ``stack(2, a#1, b#2, c#3, d#4)`` has rows, None where they can be cut in no way, or in two; the last may lack its
    last value. ``inline(array(struct(x, a#1, y, b#2)))`` has fields by their names; ``replicaterows(n#1, a#2, b#3)``
    repeats rows. Others make all columns from all that they are given.
    """
    name, _, rest = generator.partition("(")
    rest, count = rest.removesuffix(")"), len(names)
    row_count, _, values = rest.partition(", ")
    if name == "stack" and row_count.isdigit():
        sizes = (int(row_count) * count, int(row_count) * count - 1)
        cells = next(filter(None, (elements(f"[{values}]", size) for size in sizes)), None)
        return [(cells[position::count], TRANSFORMATION) for position in range(count)] if cells else None
    if name == "replicaterows" and len(given := arguments(rest)) == count + 1:
        return [([value], IDENTITY) for value in given[1:]]
    if names and name == "inline" and _STRUCTS.match(rest):
        structs = _values_of_structs(rest.removeprefix("array(").removesuffix(")"), names)
        return None if structs is None else [(values, TRANSFORMATION) for values in zip(*structs, strict=True)]
    return [([generator], TRANSFORMATION)] * count


def _values_of_structs(text: str, names: Sequence[str]) -> list[Sequence[str]] | None:
    """Return the values of each struct of an array, None where they are not certain.

    The names of its fields, which may hold anything, are those of the columns that are given out, unless an alias hides
    them: then no name may look as if it were more than one.
    """
    first, *others = re.split(rf"(?:\A|, )(?:named_)?struct\((?={re.escape(names[0])}, )", text)
    if others and not re.search(ATTRIBUTE, first):
        others = [_CONSTANT_STRUCTS.sub(")", each) for each in others]
        fields = re.compile(", ".join(f"{re.escape(name)}, (.*)" for name in names) + r"\)", re.DOTALL)
        is_certain = all(f", {each}".count(f", {name}, ") == names.count(name) for each in others for name in names)
        matches = [fields.fullmatch(each) for each in others]
        return [match.groups() for match in matches if match] if is_certain and all(matches) else None
    # Literals alone give no column.
    cut = [_STRUCT.fullmatch(struct) for struct in arguments(text) if re.search(ATTRIBUTE, struct)]
    parts = [arguments(match[1]) for match in cut if match]
    is_certain = all(len(each) == 2 * len(names) and each[::2] == parts[0][::2] for each in parts) and not any(
        re.search(ATTRIBUTE, name) for each in parts for name in each[::2]
    )
    return [each[1::2] for each in parts] if is_certain and all(cut) else None


def _expand(node: Node, scope: Scope) -> None:
    """``[[k#1, null, 0], [k#1, s#2, 1]], [k#5, s#6, gid#4]``: each projection makes a row of each row."""
    found = _ROWS.fullmatch(node.fields.get("Arguments", ""))
    given_out = attributes(found["given_out"]) if found else []
    rows = _rows(found["rows"], len(given_out)) if found else None
    if rows is None:
        unknown(node, scope)
        scope.unread.append(f"{node.name}: its columns")
        return
    _give_out_rows(scope, given_out, rows)
    scope.expanded |= {element.id for element in given_out if not scope.sources[element.id]}


def _rows(text: str, width: int) -> list[list[str]] | None:
    """Return the values of each row: attributes have no commas, but literals may."""
    rows: list[list[str]] = []
    pending = ""
    for part in text.split(_NEXT_ROW):
        pending += part
        values = elements(f"[{pending}]", width)
        if len(values) == width:
            rows.append(values)
            pending = ""
        else:
            pending += _NEXT_ROW
    return None if pending else rows


def _merge_rows(node: Node, scope: Scope) -> None:
    """``…, [keep(Update, condition, values…), …], …, [outputs]``: each instruction gives values for all outputs.

    Before Spark 4.1 an instruction has no context in front. ``split`` gives values for two rows (``MergeRows``).
    """
    found = _MERGED.fullmatch(node.fields.get("Arguments", ""))
    given_out = attributes(found["outputs"]) if found else []
    values: list[list[str]] = []
    for text in _INSTRUCTION_END.split(found["instructions"]) if found and found["instructions"] else ():
        kind, _, inner = text.partition("(")
        has_context = inner.partition(", ")[0] in _MERGE_CONTEXTS
        count = _ROWS_OF_INSTRUCTION[kind] * len(given_out)
        # A literal may hold what looks as the end of an instruction, or of a value: the numbers of values tell.
        texts = elements(f"[{inner}]", has_context + 1 + count)
        if not texts:
            scope.unread.append(f"{node.name}: its columns")
            values = []
            break
        condition, *rest = texts[has_context:]
        scope.decide(condition, "JOIN")
        values += (rest[start : start + len(given_out)] for start in range(0, count, max(len(given_out), 1)))
    _give_out_rows(scope, given_out, values)


def _give_out_rows(scope: Scope, given_out: Iterable[Defined], rows: Sequence[Sequence[str]]) -> None:
    """Give out columns that each row has expressions of its own for, by position."""
    known = Scope(dict(scope.names), dict(scope.sources))
    scope.output = []
    for position, element in enumerate(given_out):
        columns = (known.made_from(each[position]) for each in rows if position < len(each))
        scope.give_out([element], NOTHING.union(*columns))


GENERATORS: dict[str, Rule] = {"Expand": _expand, "Generate": _generate, "MergeRows": _merge_rows}
"""The rules of operators that make several rows of one, by kind."""
