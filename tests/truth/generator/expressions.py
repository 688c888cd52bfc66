"""SQL expressions over the columns of a frame, and which of those each passes on or is decided by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from generator.model import Column, Edges, Frame
from generator.names import LITERALS, NAMES, is_field, literal, quoted

NUMBERS = ("int", "bigint", "double")
ARRAYS = ("array<int>", "array<string>")


@dataclass(frozen=True)
class Expression:
    """SQL text; ``direct`` are the columns that it passes on, ``condition`` those that only decide.

    ``fields`` of what is a struct: names with the column that each is a copy of. ``is_plain`` as in ``Column``.
    ``also`` are columns that its text uses and its value does not come from.
    """

    text: str
    type: str
    direct: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    is_plain: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that its text uses."""
        return (*self.direct, *self.condition, *self.also)

    def column(self, frame: Frame) -> Column:
        """The column that it makes of the frame; a copy stays the column that it is."""
        if self.text in frame.columns:
            return frame[self.text]
        edges = frame.edges(self.direct) | frame.edges(self.condition).deciding
        edges |= Edges(may=frame.edges(self.also).all)
        fields = {name: (frame[of].type, frame[of].edges) for name, of in self.fields}
        is_constant = not self.names
        plain = self.is_plain and not is_constant and all(frame[name].is_plain for name in self.names)
        return Column(self.type, edges, fields, plain, is_constant, tokens=frame.tokens(self.names))


@dataclass
class Draw:
    """Takes names, columns and expressions at random."""

    random: Random
    used: int = 0
    _odd: set[str] = field(default_factory=set)

    def name(self) -> str:
        """A column name that no column has."""
        self.used += 1
        if self.chance(0.4):
            odd = self.random.choice(NAMES)
            is_new = odd not in self._odd
            self._odd.add(odd)
            return quoted(odd if is_new else f"{odd} {self.used}")
        stem = self.random.choice(["total", "label", "flag", "part", "value", "key", "mark", "Item", "x", "note"])
        return f"{stem}_{self.used}"

    def odd_text(self) -> str:
        """A text that looks like a part of a plan."""
        return self.random.choice(LITERALS)

    def text(self) -> str:
        """A text that looks like a part of a plan, as SQL takes it."""
        return literal(self.odd_text())

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.random.random() < share

    def names_of(self, frame: Frame, *types: str, plain: bool = True) -> list[str]:
        """The columns of these types (of all simple ones), in any order; ``address.city`` for a field of a struct."""
        found = []
        for name, column in frame.columns.items():
            if plain and not column.is_plain:
                continue
            if column.type in types or (not types and "<" not in column.type):
                found.append(name)
            found += [f"{name}.{part}" for part, (kind, _) in column.fields.items() if kind in types]
        return self.random.sample(found, len(found))

    def two(self, frame: Frame, *types: str) -> tuple[str, str] | None:
        """Two columns of one type that come from different sources: Spark simplifies what is the same twice."""
        for kind in self.random.sample(types, len(types)):
            found = self.names_of(frame, kind)
            for other in found[1:]:
                if not (frame[other].edges.all & frame[found[0]].edges.all):
                    return found[0], other
        return None

    def one(self, frame: Frame, *types: str, plain: bool = True) -> str | None:
        """One column of these types."""
        found = self.names_of(frame, *types, plain=plain)
        return found[0] if found else None

    def condition(self, frame: Frame, depth: int = 1) -> Expression | None:  # noqa: C901
        """A condition that holds for some rows."""
        if depth and self.chance(0.3):
            return self._combined(frame)
        pair = self.two(frame, "int", "double", "bigint", "date", "string")
        if pair and self.chance(0.2):
            return Expression(f"{pair[0]} {self.random.choice(['<', '>=', '<>'])} {pair[1]}", "boolean", pair)
        name = self.one(frame, *NUMBERS, "string", "date", "boolean", *ARRAYS)
        if name is None:
            return None
        column = frame[name]
        if column.type == "string" and self.chance(0.3):
            return self._compared(name)
        match column.type:
            case "string":
                forms = ["{} LIKE '%a%'", "{} IN ('paid', 'open', 'north', 'x')", "length({}) > 2", "{} > 'b'"]
            case "date":
                forms = ["{} >= DATE'2024-03-01'", "month({}) > 2", "year({}) BETWEEN 2024 AND 2025"]
            case "boolean":
                forms = ["{}", "NOT {}"]
            case "array<int>":
                forms = ["array_contains({}, 1)", "exists({}, e -> e > 1)", "size({}) > 1"]
            case "array<string>":
                forms = ["array_contains({}, 'paid')", "array_position({}, 'b') > 0"]
            case _:
                forms = ["{} > 1", "{} BETWEEN 0 AND 20", "{} IN (1, 2, 3, 5, 10)", "{} % 2 = 1"]
        if column.is_nullable and not is_field(name):
            forms.append("{} IS NOT NULL")
        return Expression(self.random.choice(forms).format(name), "boolean", (name,))

    def _compared(self, name: str) -> Expression:
        """A string against an odd text."""
        text = self.text()
        forms = (
            f"{name} <> {text}",
            f"{name} > {text}",
            f"NOT contains({name}, {text})",
            f"{name} NOT IN ({text}, 'b')",
        )
        return Expression(self.random.choice(forms), "boolean", (name,))

    def _combined(self, frame: Frame) -> Expression | None:
        one, other = self.condition(frame, 0), self.condition(frame, 0)
        if one is None or other is None or frame.edges(one.names).all & frame.edges(other.names).all:
            return one
        word = self.random.choice(["AND", "OR", "AND NOT"])
        return Expression(f"({one.text}) {word} ({other.text})", "boolean", one.direct + other.direct)

    def expression(self, frame: Frame) -> Expression | None:
        """Any expression but an aggregate or window function."""
        for _ in range(6):
            made = self.random.choice(MAKERS)(self, frame)
            if made is not None:
                return made
        return None

    def expressions(self, frame: Frame, number: int) -> list[tuple[Expression, str]]:
        """So many with a name for each, or fewer."""
        made = (self.expression(frame) for _ in range(number))
        return [(each, self.name()) for each in made if each is not None]


Maker = Callable[[Draw, Frame], Expression | None]

_ONE: Sequence[tuple[str, str, str]] = (
    ("double", "{} * 2", "double"), ("double", "round({}, 1)", "double"), ("double", "abs({}) + 1", "double"),
    ("double", "CAST({} AS STRING)", "string"), ("double", "-{}", "double"), ("double", "floor({})", "bigint"),
    ("int", "{} % 3", "int"), ("int", "{} + 1", "int"), ("int", "CAST({} AS DOUBLE)", "double"),
    ("int", "CAST({} AS STRING)", "string"), ("bigint", "{} - 1", "bigint"), ("int", "pow({}, 2)", "double"),
    ("string", "upper({})", "string"), ("string", "lower(trim({}))", "string"), ("string", "length({})", "int"),
    ("string", "substring({}, 1, 2)", "string"), ("string", "concat({}, '-x, AS y#1')", "string"),
    ("string", "regexp_replace({}, '[aeiou]', '*')", "string"), ("string", "md5({})", "string"),
    ("string", "try_cast({} AS INT)", "int"), ("string", "{} || ' END'", "string"),
    ("string", "sha2({}, 256)", "string"),
    ("string", "split({}, 'a')", "array<string>"), ("string", "translate({}, 'a(', 'b)')", "string"),
    ("date", "year({})", "int"), ("date", "date_add({}, 7)", "date"), ("date", "date_format({}, 'yyyy-MM')", "string"),
    ("date", "trunc({}, 'MM')", "date"), ("date", "last_day({})", "date"), ("date", "dayofweek({})", "int"),
    ("array<int>", "size({})", "int"), ("array<int>", "transform({}, e -> e + 1)", "array<int>"),
    ("array<int>", "aggregate({}, 0, (acc, e) -> acc + e)", "int"),
    ("array<int>", "filter({}, e -> e > 1)", "array<int>"),
    ("array<int>", "array_max({})", "int"), ("array<string>", "array_join({}, ',')", "string"),
    ("array<string>", "sort_array({})", "array<string>"), ("array<string>", "element_at({}, 1)", "string"),
    ("array<string>", "to_json({})", "string"),
    ("array<string>", "transform({}, (e, i) -> concat(e, i))", "array<string>"),
    ("map<string,int>", "map_keys({})", "array<string>"), ("map<string,int>", "{}['size']", "int"),
    ("map<string,int>", "to_json({})", "string"),
    ("map<string,int>", "map_filter({}, (k, v) -> v > 1)", "map<string,int>"),
    ("map<string,int>", "transform_values({}, (k, v) -> v + 1)", "map<string,int>"),
    ("array<struct<sku:string,qty:int>>", "{}.sku", "array<string>"),
    ("array<struct<sku:string,qty:int>>", "{}[0].qty", "int"),
    ("array<struct<sku:string,qty:int>>", "filter({}, e -> e.qty > 0)", "array<struct<sku:string,qty:int>>"),
)  # fmt: skip

_TWO: Sequence[tuple[str, str, str]] = (
    ("double", "{} + {}", "double"), ("double", "{} - {} * 2", "double"), ("double", "greatest({}, {})", "double"),
    ("int", "{} + {}", "int"), ("int", "least({}, {})", "int"), ("bigint", "{} + {}", "bigint"),
    ("string", "concat({}, ' ', {})", "string"), ("string", "concat_ws('-', {}, {})", "string"),
    ("string", "instr({}, {})", "int"), ("string", "levenshtein({}, {})", "int"),
    ("date", "datediff({}, {})", "int"), ("date", "months_between({}, {})", "double"),
    ("string", "array({}, {})", "array<string>"), ("array<string>", "array_union({}, {})", "array<string>"),
    ("int", "array({}, {})", "array<int>"),
)  # fmt: skip


def _of_one(draw: Draw, frame: Frame) -> Expression | None:
    for kind, text, made in draw.random.sample(_ONE, 8):
        name = draw.one(frame, kind)
        if name:
            return Expression(text.format(name), made, (name,))
    return None


def _of_two(draw: Draw, frame: Frame) -> Expression | None:
    for kind, text, made in draw.random.sample(_TWO, 5):
        pair = draw.two(frame, kind)
        if pair:
            return Expression(text.format(*pair), made, pair)
    return None


def _mixed(draw: Draw, frame: Frame) -> Expression | None:
    """A string with a number in it, a date moved by one, or an array lookup inside of another function."""
    text, number = draw.one(frame, "string"), draw.one(frame, "int")
    if not text or not number or frame[text].edges.all & frame[number].edges.all:
        return None
    forms = ("concat({}, ':', CAST({} AS STRING))", "lpad({}, {} + 3, '_')", "repeat({}, abs({}) % 3)")
    return Expression(draw.random.choice(forms).format(text, number), "string", (text, number))


def _branches(draw: Draw, frame: Frame) -> Expression | None:
    pair, condition = draw.two(frame, "int", "double", "string", "date"), draw.condition(frame)
    if pair is None or condition is None or frame.edges(condition.names).all & frame.edges(pair).all:
        return None
    form = draw.random.choice(["CASE WHEN {} THEN {} ELSE {} END", "if({}, {}, {})"])
    return Expression(form.format(condition.text, *pair), frame[pair[0]].type, pair, condition.names)


def _three_branches(draw: Draw, frame: Frame) -> Expression | None:
    one, other, name = draw.condition(frame, 0), draw.condition(frame, 0), draw.one(frame, "double", "string")
    if one is None or other is None or name is None or frame.edges(one.names).all & frame.edges(other.names).all:
        return None
    if frame[name].edges.all & frame.edges(one.names + other.names).all:
        return None
    last = "0" if frame[name].type == "double" else "'none'"
    text = f"CASE WHEN {one.text} THEN {name} WHEN {other.text} THEN {last} ELSE {name} END"
    return Expression(text, frame[name].type, (name,), one.names + other.names)


def _labels(draw: Draw, frame: Frame) -> Expression | None:
    """Only the condition is a source."""
    condition = draw.condition(frame)
    if condition is None:
        return None
    text = f"CASE WHEN {condition.text} THEN 'THEN low' ELSE 'high' END"
    return Expression(text, "string", (), condition.names, is_plain=False)


def _nulls(draw: Draw, frame: Frame) -> Expression | None:
    pair = draw.two(frame, "int", "double", "string", "date")
    if pair is None or not (frame[pair[0]].is_nullable and frame[pair[1]].is_nullable):
        return None
    kind = frame[pair[0]].type
    if draw.chance(0.5):
        # Which of the two it is depends on both.
        return Expression(draw.random.choice(["coalesce({}, {})", "nvl({}, {})"]).format(*pair), kind, pair, pair)
    return Expression(f"nullif({pair[0]}, {pair[1]})", kind, pair[:1], pair)


def _struct(draw: Draw, frame: Frame) -> Expression | None:
    pair = draw.two(frame, "int", "double", "string")
    if pair is None:
        return None
    kinds = [frame[name].type for name in pair]
    text, kind = "named_struct('f', {}, 'g', {})".format(*pair), "struct<f:{},g:{}>".format(*kinds)
    return Expression(text, kind, pair, fields=(("f", pair[0]), ("g", pair[1])))


def _json(draw: Draw, frame: Frame) -> Expression | None:
    name = draw.one(frame, "string")
    if name is None:
        return None
    if draw.chance(0.5):
        return Expression(f"from_json({name}, 'a INT, b STRING').a", "int", (name,))
    pair = draw.two(frame, "int", "double", "string", "date")
    return Expression("to_json(struct({}, {}))".format(*pair), "string", pair) if pair else None


def _odd_text(draw: Draw, frame: Frame) -> Expression | None:
    """A text that looks like a part of a plan, beside a column, in its place, and in the branches of a CASE."""
    name, text = draw.one(frame, "string"), draw.text()
    if name is None:
        return None
    pair = draw.two(frame, "string")
    if pair and draw.chance(0.4):
        case = f"CASE WHEN {pair[0]} = {text} THEN ({pair[1]}) ELSE {draw.text()} END"
        return Expression(case, "string", pair[1:], pair[:1])
    forms = (f"concat({name}, {text})", f"{text} || {name}", f"replace({name}, {text}, {draw.text()})")
    numbers = (f"instr({name}, {text})", f"locate({text}, {name})")
    if draw.chance(0.3):
        return Expression(draw.random.choice(numbers), "int", (name,))
    return Expression(draw.random.choice(forms), "string", (name,))


def _literal(draw: Draw, frame: Frame) -> Expression | None:
    kinds = [
        (draw.text(), "string"),
        ("'x, (#1'", "string"),
        ("7", "int"),
        ("1.5D", "double"),
        ("DATE'2024-01-01'", "date"),
        ("true", "boolean"),
    ]
    return Expression(*draw.random.choice(kinds))


def _comparison(draw: Draw, frame: Frame) -> Expression | None:
    return draw.condition(frame)


MAKERS: Sequence[Maker] = (
    *[_of_one] * 5, *[_of_two] * 3, _mixed, *[_branches] * 2, _three_branches, _labels, *[_nulls] * 2, _struct, _json,
    *[_odd_text] * 3,
    _literal, _comparison,
)  # fmt: skip


def columns_of(items: Iterable[tuple[Expression, str]]) -> str:
    """The list of a SELECT."""
    return ", ".join(each.text if each.text == name else f"{each.text} AS {name}" for each, name in items)


def copies(names: Iterable[str]) -> list[tuple[Expression, str]]:
    """A list of columns as expressions that copy them; the type is that of the column."""
    return [(Expression(name, "", (name,)), name) for name in names]
