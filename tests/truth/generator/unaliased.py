"""Operations whose columns Spark names by their expressions; a list of names comes above, so that all are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generator.expressions import Draw, Expression, copies
from generator.groups import GroupBy, aggregate
from generator.model import Frame
from generator.names import bare, is_field
from generator.operation import Arguments, Operation

# Type of the column, text, type of the key.
_KEYS: Sequence[tuple[str, str, str]] = (
    ("string", "upper({})", "string"), ("string", "substring({}, 1, 2)", "string"), ("string", "length({})", "int"),
    ("date", "year({})", "int"), ("date", "date_format({}, 'yyyy-MM')", "string"), ("date", "to_date({})", "date"),
    ("int", "{} % 3", "int"), ("int", "CAST({} AS STRING)", "string"), ("double", "CAST({} AS BIGINT)", "bigint"),
    ("int", "CASE WHEN {} > 2 THEN ({}) ELSE 0 END", "int"),
)  # fmt: skip


def _named(query: str, names: Sequence[str]) -> str:
    return f"SELECT * FROM ({query}) AS t ({', '.join(names)})"


def _to_frame(names: Sequence[str]) -> str:
    return f".toDF({', '.join(repr(bare(name)) for name in names)})"


class UnaliasedSelect(Operation):
    """Some columns and some expressions, none of which has an alias."""

    kind = "select without alias"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        names = list(frame.columns)
        kept = draw.random.sample(names, draw.random.randint(1, min(3, len(names))))
        made = draw.expressions(frame, draw.random.randint(1, 3))
        return {"items": copies(kept) + made} if made else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        return replace(frame, columns={name: each.column(frame) for each, name in arguments["items"]})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        kept = ", ".join(repr(each.text) for each, _ in arguments["items"])
        return f"{names[0]}.selectExpr({kept}){_to_frame([name for _, name in arguments['items']])}"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        query = f"SELECT {', '.join(each.text for each, _ in arguments['items'])} FROM {names[0]}"
        return _named(query, [name for _, name in arguments["items"]])


class GroupByExpression(Operation):
    """Groups by an expression, whose aggregates have no alias either; with ROLLUP and CUBE."""

    kind = "groupBy without alias"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        kind, text, made = draw.random.choice(_KEYS)
        of = draw.one(frame, kind)
        if of is None or is_field(of) or frame.is_row:
            return None
        is_case = text.startswith("CASE")
        key = Expression(text.format(of, of), made, (of,), (of,) if is_case else ())
        found = (aggregate(draw, frame, without=[of]) for _ in range(draw.random.randint(1, 2)))
        items = [(each, draw.name()) for each in found if each is not None]
        form = draw.random.choice(["", "", "ROLLUP", "CUBE"])
        return {"key": key, "name": draw.name(), "items": items, "form": form} if items else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        name = arguments["name"]
        wide = replace(frame, columns={**frame.columns, name: arguments["key"].column(frame)})
        grouped = {"keys": [name], "items": arguments["items"], "form": arguments["form"], "having": None}
        return GroupBy().trace(grouped, wide)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        method = {"ROLLUP": "rollup", "CUBE": "cube"}.get(arguments["form"], "groupBy")
        items = ", ".join(f"f.expr({each.text!r})" for each, _ in arguments["items"])
        key = f"f.expr({arguments['key'].text!r})"
        return f"{names[0]}.{method}({key}).agg({items}){_to_frame(self._names(arguments))}"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        key, form = arguments["key"].text, arguments["form"]
        made = ", ".join([key, *(each.text for each, _ in arguments["items"])])
        keys = f"{form}({key})" if form else key
        return _named(f"SELECT {made} FROM {names[0]} GROUP BY {keys}", self._names(arguments))

    def _names(self, arguments: Arguments) -> list[str]:
        return [arguments["name"], *(name for _, name in arguments["items"])]


OPERATIONS: tuple[Operation, ...] = (UnaliasedSelect(), GroupByExpression())
