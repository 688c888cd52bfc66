"""Operations that make groups: aggregates, grouping sets and pivots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from generator.expressions import NUMBERS, Draw, Expression
from generator.model import Column, Frame, Removable, new_token
from generator.names import bare, is_field, literal
from generator.operation import Arguments, Operation

# Type of the argument, text, type of the result, and whether the same row twice changes nothing, as Spark sees it.
_AGGREGATES: Sequence[tuple[str, str, str, bool]] = (
    ("double", "sum({})", "double", False), ("int", "sum({} + 1)", "bigint", False),
    ("bigint", "sum({})", "bigint", False),
    ("double", "avg({} * 2)", "double", False), ("int", "max({})", "int", True), ("string", "min({})", "string", True),
    ("date", "max({})", "date", True), ("string", "count(DISTINCT {})", "bigint", True),
    ("string", "first({})", "string", True),
    ("string", "collect_list({})", "array<string>", False), ("int", "collect_set({})", "array<int>", True),
    ("double", "stddev({})", "double", False), ("int", "approx_count_distinct({})", "bigint", False),
    ("int", "sum(DISTINCT {})", "bigint", True), ("double", "percentile_approx({}, 0.5)", "double", False),
    ("string", "max(upper({}))", "string", True), ("date", "last({})", "date", True),
    ("int", "bit_xor({})", "int", False),
)  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function; with ``where`` of some rows only."""

    made: Expression
    is_indifferent: bool
    where: Expression | None = None

    @property
    def text(self) -> str:
        """Its SQL."""
        return self.made.text + (f" FILTER (WHERE {self.where.text})" if self.where else "")

    def column(self, frame: Frame) -> Column:
        """Its result; unless it is indifferent to rows that come twice, whatever made the rows is needed."""
        conditions = self.where.names if self.where else ()
        made = self.made.column(frame)
        tokens = frozenset() if self.is_indifferent else frame.needed
        edges = made.edges | frame.edges(conditions).deciding
        return Column(self.made.type, edges, tokens=made.tokens | frame.tokens(conditions) | tokens)


def aggregate(draw: Draw, frame: Frame, *, without: Sequence[str] = ()) -> Aggregate | None:
    """Any aggregate of what does not come from the columns ``without``."""
    taken = frame.edges(without).all
    if draw.chance(0.1):
        return Aggregate(Expression("count(*)", "bigint"), is_indifferent=False)
    for kind, text, made, is_indifferent in draw.random.sample(_AGGREGATES, len(_AGGREGATES)):
        name = draw.one(frame, kind)
        if name is None or frame[name].edges.all & taken:
            continue
        if draw.chance(0.1) and frame[name].is_nullable:
            return Aggregate(Expression(f"count({name})", "bigint", (name,)), is_indifferent=False)
        where = draw.condition(frame, 0) if draw.chance(0.2) else None
        if where is not None and frame.edges(where.names).all & (frame[name].edges.all | taken):
            where = None
        return Aggregate(Expression(text.format(name), made, (name,)), is_indifferent, where)
    return None


def keys_of(draw: Draw, frame: Frame, number: int) -> list[str]:
    """Columns to group by, which come from different sources."""
    found: list[str] = []
    for name in draw.names_of(frame, *NUMBERS, "string", "date", "boolean"):
        if not frame[name].edges.all & frame.edges(found).all and not is_field(name):
            found.append(name)
    return found[:number]


class GroupBy(Operation):
    """GROUP BY, or one row of all; with ROLLUP, CUBE and GROUPING SETS; with HAVING."""

    kind = "groupBy"
    SETS = ("", "", "", "ROLLUP", "CUBE", "GROUPING SETS")

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        keys = keys_of(draw, frame, draw.random.choice([0, 1, 1, 2, 2]))
        if frame.is_row:
            return None
        made = [aggregate(draw, frame, without=keys) for _ in range(draw.random.randint(1, 3))]
        items = [(each, draw.name()) for each in made if each is not None]
        form = draw.random.choice(self.SETS) if keys else ""
        having = draw.random.choice([name for _, name in items]) if items and keys and draw.chance(0.25) else None
        if having and {name: each for each, name in items}[having].made.type not in NUMBERS:
            having = None
        return {"keys": keys, "items": items, "form": form, "having": having} if items else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        keys, names = arguments["keys"], {name for _, name in arguments["items"]}
        counted, frame = frame, frame.deduplicated()
        token = new_token()
        columns = {name: replace(frame[name], is_nullable=False) for name in keys}
        if arguments["form"]:
            columns = {name: Column(each.type, each.edges, tokens=each.tokens) for name, each in columns.items()}
        for each, name in arguments["items"]:
            made = each.column(counted)
            columns[name] = replace(made, tokens=made.tokens | {token})
        grouped = frame.decided_by(keys)
        grouping = Removable(token, frame.edges(keys).deciding)
        ids = frozenset(columns[name].id for name in keys)
        unique = frozenset() if arguments["form"] else frozenset({ids})
        result = Frame(
            columns, grouped.rows, grouped.feeds, grouped.may_feed, keys=unique,
            removable=(*grouped.removable, grouping), is_row=not keys,
        )  # fmt: skip
        having = arguments["having"]
        return result.decided_by([having]) if having in names else result

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        items = ", ".join(f"f.expr({each.text!r}).alias({bare(name)!r})" for each, name in arguments["items"])
        keys = ", ".join(repr(key) for key in arguments["keys"])
        condition = f"{arguments['having']} > 0"
        having = f".where({condition!r})" if arguments["having"] else ""
        if arguments["form"] == "GROUPING SETS":
            return None
        method = {"ROLLUP": "rollup", "CUBE": "cube"}.get(arguments["form"], "groupBy")
        return f"{names[0]}.{method}({keys}).agg({items}){having}" if keys else f"{names[0]}.agg({items})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        keys, form = arguments["keys"], arguments["form"]
        made = [f"{each.text} AS {name}" for each, name in arguments["items"]]
        query = f"SELECT {', '.join([*keys, *made])} FROM {names[0]}"
        listed = ", ".join(keys)
        if form == "GROUPING SETS":
            query += f" GROUP BY GROUPING SETS (({listed}), ({keys[0]}), ())"
        elif keys:
            query += f" GROUP BY {form}({listed})" if form else f" GROUP BY {listed}"
        if arguments["having"]:
            text = next((each.text for each, name in arguments["items"] if name == arguments["having"]), None)
            query += f" HAVING {text} > 0" if text else ""
        return query


class Pivot(Operation):
    """Values of one column become columns."""

    kind = "pivot"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        keys = keys_of(draw, frame, 1)
        names = [name for name in draw.names_of(frame, "string") if not frame[name].edges.all & frame.edges(keys).all]
        of = draw.one(frame, "double")
        if not keys or not names or of is None or frame.is_row or is_field(names[0]) or is_field(of):
            return None
        if frame[of].edges.all & frame.edges([*keys, names[0]]).all:
            return None
        return {
            "key": keys[0],
            "by": names[0],
            "of": of,
            "function": draw.random.choice(["sum", "max"]),
            "values": ["paid", draw.odd_text()],
            "names": [draw.name(), draw.name()],
        }

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        key, by, of = (arguments[each] for each in ("key", "by", "of"))
        frame = frames[0].deduplicated()
        tokens = frame.tokens([by, of]) | (frames[0].needed if arguments["function"] != "max" else frozenset())
        token = new_token()
        edges = frame.edges([of]) | frame[by].edges.deciding
        columns = {
            key: replace(frame[key], is_nullable=False),
            **{name: Column("double", edges, tokens=tokens | {token}) for name in arguments["names"]},
        }
        grouped = frame.decided_by([key, by])
        # It groups by both, and then by the key alone: where no column that it makes is used, the second will do.
        first = Removable(token, frame.edges([by]).deciding, is_active=True)
        unique = frozenset({frozenset({columns[key].id})})
        return replace(grouped, columns=columns, keys=unique, removable=(*grouped.removable, first))

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        key, by, of, function = (arguments[each] for each in ("key", "by", "of", "function"))
        made = ", ".join(repr(bare(name)) for name in (key, *arguments["names"]))
        return f"{names[0]}.groupBy({key!r}).pivot({by!r}, {arguments['values']}).{function}({of!r}).toDF({made})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        key, by, of, function = (arguments[each] for each in ("key", "by", "of", "function"))
        pairs = zip(arguments["values"], arguments["names"], strict=True)
        values = ", ".join(f"{literal(value)} AS {name}" for value, name in pairs)
        return (
            f"SELECT * FROM (SELECT {key}, {by}, {of} FROM {names[0]}) PIVOT ({function}({of}) FOR {by} IN ({values}))"
        )

    def smaller(self, arguments: Arguments) -> list[Arguments]:
        return []


OPERATIONS: tuple[Operation, ...] = (GroupBy(), Pivot())
