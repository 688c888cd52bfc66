"""Operations with windows: functions over them, ranks that pick rows, and windows over groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generator.expressions import NUMBERS, Draw, Expression
from generator.groups import keys_of
from generator.model import Column, Frame, Removable, new_token
from generator.names import bare
from generator.operation import Arguments, Operation

# Type of the argument (none where it only looks at the order), text, type of the result.
_WINDOWED: Sequence[tuple[str, str, str]] = (
    ("", "row_number()", "int"), ("", "rank()", "int"), ("", "dense_rank()", "int"), ("", "ntile(2)", "int"),
    ("", "percent_rank()", "double"), ("", "cume_dist()", "double"), ("", "count(*)", "bigint"),
    ("double", "sum({})", "double"), ("double", "lag({})", "double"), ("string", "lead({}, 2)", "string"),
    ("int", "max({} + 1)", "int"), ("string", "first_value({})", "string"), ("date", "min({})", "date"),
    ("string", "collect_list({})", "array<string>"), ("double", "avg({})", "double"),
    ("string", "nth_value({}, 2)", "string"),
)  # fmt: skip
_FRAMES = (
    "",
    "",
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
_WITHOUT_FRAME = ("row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist", "lag", "lead")


class Window(Operation):
    """Functions over windows; over aggregates, too."""

    kind = "window"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        keys = keys_of(draw, frame, 2)
        if frame.is_row or not keys:
            return None
        kind, text, made = draw.random.choice(_WINDOWED)
        of = draw.one(frame, kind) if kind else ""
        if of is None or (of and frame[of].edges.all & frame.edges(keys).all):
            return None
        by, order = keys[:1], keys[1:]
        function = text.partition("(")[0]
        if function in _WITHOUT_FRAME and not order:
            by, order = [], keys
        window = f"PARTITION BY {', '.join(by)}" if by else ""
        if order:
            window = f"{window} ORDER BY {order[0]} {draw.random.choice(['ASC', 'DESC'])}".strip()
            window += "" if function in _WITHOUT_FRAME else draw.random.choice(_FRAMES)
        call = f"{text.format(of)} OVER ({window})"
        outer = draw.random.choice(["{}", "{}", "{} + 1"]) if made in NUMBERS else "{}"
        direct = (of,) if of else ()
        return {"call": Expression(outer.format(call), made, direct, tuple(keys)), "name": draw.name()}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        made = arguments["call"].column(frame)
        tokens = made.tokens | frame.needed
        return replace(frame, columns={**frame.columns, arguments["name"]: replace(made, tokens=tokens)})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.withColumn({bare(arguments['name'])!r}, f.expr({arguments['call'].text!r}))"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"SELECT *, {arguments['call'].text} AS {arguments['name']} FROM {names[0]}"


class TopOfEach(Operation):
    """The first rows of each group, by a rank that is gone afterwards."""

    kind = "rank filter"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        keys = keys_of(draw, frame, 2)
        if frame.is_row or len(keys) < 2:
            return None
        return {
            "by": keys[0],
            "order": keys[1],
            "function": draw.random.choice(["row_number", "rank"]),
            "name": draw.name(),
        }

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        return frames[0].anchored().decided_by([arguments["by"], arguments["order"]])

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        window = f"PARTITION BY {arguments['by']} ORDER BY {arguments['order']}"
        call, name = f"{arguments['function']}() OVER ({window})", arguments["name"]
        condition = f"{name} <= 2"
        return f"{names[0]}.withColumn({bare(name)!r}, f.expr({call!r})).where({condition!r}).drop({bare(name)!r})"


class WindowOfAggregate(Operation):
    """An aggregate of groups within a window over the groups."""

    kind = "window of aggregate"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        keys = keys_of(draw, frame, 2)
        of = next(
            (each for each in draw.names_of(frame, "double") if not frame[each].edges.all & frame.edges(keys).all), None
        )
        if frame.is_row or len(keys) < 2 or of is None:
            return None
        return {"by": keys[0], "order": keys[1], "of": of, "names": (draw.name(), draw.name())}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        frame = frames[0].deduplicated()
        by, order, of = (arguments[key] for key in ("by", "order", "of"))
        grouped, (ranked, total) = frame.decided_by([by, order]), arguments["names"]
        token = new_token()
        tokens = frames[0].needed | frame.tokens([by, order, of]) | {token}
        over = frame.edges([of]) | frame.edges([by]).deciding
        columns = {
            by: replace(frame[by], is_nullable=False),
            order: replace(frame[order], is_nullable=False),
            ranked: Column("int", frame.edges([by, of]).deciding, tokens=tokens),
            total: Column("double", over, tokens=tokens),
        }
        unique = frozenset({frozenset({columns[by].id, columns[order].id})})
        grouping = Removable(token, frame.edges([by, order]).deciding)
        return replace(grouped, columns=columns, keys=unique, removable=(*grouped.removable, grouping))

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        by, order, of = (arguments[key] for key in ("by", "order", "of"))
        ranked, total = arguments["names"]
        return (
            f"SELECT {by}, {order}, rank() OVER (PARTITION BY {by} ORDER BY sum({of}) DESC) AS {ranked}, "
            f"sum(sum({of})) OVER (PARTITION BY {by}) AS {total} FROM {names[0]} GROUP BY {by}, {order}"
        )


OPERATIONS: tuple[Operation, ...] = (Window(), TopOfEach(), WindowOfAggregate())
