"""Operations on one frame: SELECT, WHERE, ORDER BY, LIMIT, DISTINCT, samples, caches and Python functions."""

from __future__ import annotations

from dataclasses import replace

from generator.expressions import Draw, Expression, columns_of, copies
from generator.model import Edges, Frame, Removable, new_token
from generator.names import bare
from generator.operation import Arguments, Operation


class Select(Operation):
    """Some columns as they are, and some expressions."""

    kind = "select"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        names = list(frame.columns)
        kept = sorted(draw.random.sample(names, draw.random.randint(1, min(5, len(names)))), key=names.index)
        made = draw.expressions(frame, draw.random.randint(1, 3))
        return {"items": copies(kept) + made, "form": draw.random.choice(["selectExpr", "select"])} if made else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        return replace(frame, columns={name: each.column(frame) for each, name in arguments["items"]})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        if arguments["form"] == "selectExpr":
            return f"{names[0]}.selectExpr({', '.join(repr(columns_of([item])) for item in arguments['items'])})"
        items = (f"f.expr({each.text!r}).alias({bare(name)!r})" for each, name in arguments["items"])
        return f"{names[0]}.select({', '.join(items)})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"SELECT {columns_of(arguments['items'])} FROM {names[0]}"


class WithColumn(Operation):
    """One more column, or another in the place of one."""

    kind = "withColumn"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        made = draw.expression(frame)
        # A new content under an old name: sorts, keys and conditions before it mean the old one.
        name = draw.one(frame, plain=False) if draw.chance(0.4) else draw.name()
        return {"made": made, "name": name} if made and name else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        return replace(frame, columns={**frame.columns, arguments["name"]: arguments["made"].column(frame)})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.withColumn({bare(arguments['name'])!r}, f.expr({arguments['made'].text!r}))"


class LateralAlias(Operation):
    """A SELECT whose second expression uses the name of the first."""

    kind = "lateral alias"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        made = draw.expression(frame)
        if made is None or not made.is_plain or not made.names:
            return None
        kept, name = draw.random.sample(list(frame.columns), 1), draw.name()
        then = draw.expression(Frame({name: made.column(frame)}))
        return {"kept": kept, "items": [(made, name), (then, draw.name())]} if then else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        wide = frame
        for each, name in arguments["items"]:
            wide = replace(wide, columns={**wide.columns, name: each.column(wide)})
        return wide.only([*arguments["kept"], *(name for _, name in arguments["items"])])

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"SELECT {columns_of(copies(arguments['kept']) + arguments['items'])} FROM {names[0]}"


class Filter(Operation):
    """WHERE."""

    kind = "filter"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        condition = draw.condition(frames[0])
        return {"condition": condition} if condition else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        return frames[0].decided_by(arguments["condition"].names)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.where({arguments['condition'].text!r})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"SELECT * FROM {names[0]} WHERE {arguments['condition'].text}"


class Sort(Operation):
    """ORDER BY, of all rows or in each partition, with or without a LIMIT."""

    kind = "sort"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        open_tokens = {each.token for each in frame.removable}
        names = [name for name in draw.names_of(frame) if not frame[name].tokens & open_tokens]
        if not names or frame.is_row:
            return None
        by = [
            (name, draw.random.choice(["ASC", "DESC", "DESC NULLS LAST"]))
            for name in names[: draw.random.randint(1, 2)]
        ]
        return {"by": by, "form": draw.random.choice(["sort", "limit", "limit", "within"])}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        sorted_frame = replace(frame.unordered(), order=frame.edges(name for name, _ in arguments["by"]).deciding)
        return sorted_frame.anchored() if arguments["form"] == "limit" else sorted_frame

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        by = ", ".join(f"f.expr({name!r}).{_order(way)}()" for name, way in arguments["by"])
        method = "sortWithinPartitions" if arguments["form"] == "within" else "orderBy"
        return f"{names[0]}.{method}({by})" + (".limit(7)" if arguments["form"] == "limit" else "")

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        how = "SORT BY" if arguments["form"] == "within" else "ORDER BY"
        by = ", ".join(f"{name} {way}" for name, way in arguments["by"])
        query = f"SELECT * FROM {names[0]} {how} {by}"
        return query + (" LIMIT 7" if arguments["form"] == "limit" else "")


def _order(way: str) -> str:
    return {"ASC": "asc", "DESC": "desc"}.get(way, "desc_nulls_last")


class Limit(Operation):
    """Some rows, whichever: LIMIT, OFFSET or a sample."""

    kind = "limit"
    FORMS = (
        (".limit(9)", "LIMIT 9"), (".offset(1)", "OFFSET 1"), (".sample(0.9, seed=3)", "TABLESAMPLE (90 PERCENT)"),
    )  # fmt: skip

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        return None if frames[0].is_row else {"form": draw.random.choice(self.FORMS)}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        return frames[0].anchored()

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}{arguments['form'][0]}"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"SELECT * FROM {names[0]} {arguments['form'][1]}"


class Distinct(Operation):
    """DISTINCT, or one row of each that agree in some columns."""

    kind = "distinct"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        names = draw.names_of(frame)
        # Maps cannot be compared.
        if frame.is_row or not names or any("map<" in each.type for each in frame.columns.values()):
            return None
        return {"by": [] if draw.chance(0.5) else names[: draw.random.randint(1, 2)]}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        by = arguments["by"] or list(frame.columns)
        ids = frozenset(each.id for each in frame.columns.values())
        edges = frame.edges(by).deciding
        if len(by) == len(frame.columns):
            # Spark drops a DISTINCT of rows that it knows to be distinct.
            edges = edges.optional if any(key <= ids for key in frame.keys) else edges
            return replace(_removable(frame.deduplicated(), edges), keys=frozenset({*frame.keys, ids}))
        token = new_token()
        columns = {
            # "first" of the others.
            name: each if name in by else replace(each, is_nullable=False, tokens=each.tokens | {token})
            for name, each in frame.columns.items()
        }
        frame = frame.deduplicated().decided_by(by)
        removable = (*frame.removable, Removable(token, edges))
        unique = frozenset({*frame.keys, frozenset(frame[name].id for name in by)})
        return replace(frame, columns=columns, keys=unique, removable=removable)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        by = [bare(name) for name in arguments["by"]]
        return f"{names[0]}.dropDuplicates({by})" if by else f"{names[0]}.distinct()"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return None if arguments["by"] else f"SELECT DISTINCT * FROM {names[0]}"


def _removable(frame: Frame, edges: Edges) -> Frame:
    """A grouping that another one above makes superfluous, unless what is made from its groups is used."""
    grouping = Removable(new_token(), edges)
    return replace(frame, rows=frame.rows | edges, removable=(*frame.removable, grouping))


class Arrange(Operation):
    """What changes no row: partitions, hints, caches."""

    kind = "repartition/hint"
    FORMS = (
        ".repartition(3)",
        ".coalesce(1)",
        ".repartition(2, {!r})",
        ".repartitionByRange(2, {!r})",
        ".hint('rebalance')",
    )

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        name = draw.one(frames[0])
        return {"name": name, "form": draw.random.choice(self.FORMS)} if name else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        return replace(frames[0].unordered(), rows=frames[0].unordered().rows)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}{arguments['form'].format(arguments['name'])}"


class Cache(Operation):
    """What is kept for later: Spark plans it on its own, and looks through it no more."""

    kind = "cache"
    FORMS = (".cache()", ".persist()")

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        return {"form": draw.random.choice(self.FORMS)}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        return replace(frames[0].settled(), keys=frozenset())

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}{arguments['form']}"


class PythonFunction(Operation):
    """A function of Python or pandas, alone, of an expression and in one, or as a condition."""

    kind = "python udf"
    FUNCTIONS = (
        ("string", "string", "shout", 'spark.udf.register("shout", lambda text: f"{text}!", "string")'),
        ("int", "bigint", "doubled", 'spark.udf.register("doubled", lambda number: 2 * (number or 0), "bigint")'),
        ("double", "double", "taxed",
         'spark.udf.register("taxed", f.pandas_udf(lambda each: each * 1.25, "double", f.PandasUDFType.SCALAR))'),
        ("string", "int", "letters",
         'spark.udf.register("letters", f.pandas_udf(lambda each: each.str.len(), "int", f.PandasUDFType.SCALAR))'),
    )  # fmt: skip

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        kind, made, name, line = draw.random.choice(self.FUNCTIONS)
        of = draw.one(frame, kind)
        if of is None:
            return None
        inner = draw.random.choice(
            {"string": ["{}", "upper({})"], "int": ["{}", "{} + 1"]}.get(kind, ["{}", "abs({})"])
        )
        outer = draw.random.choice({"string": ["{}", "concat({}, 'x')"]}.get(made, ["{}", "{} + 1"]))
        call = Expression(outer.format(f"{name}({inner.format(of)})"), made, (of,))
        condition = f"{call.text} > {'1' if made != 'string' else repr('a')}"
        form = draw.random.choice(["column", "column", "filter"])
        return {"call": call, "name": draw.name(), "form": form, "condition": condition, "line": line}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        if arguments["form"] == "filter":
            return frame.decided_by(arguments["call"].names)
        return replace(frame, columns={**frame.columns, arguments["name"]: arguments["call"].column(frame)})

    def prepare_text(self, arguments: Arguments) -> list[str]:
        return [arguments["line"]]

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        if arguments["form"] == "filter":
            return f"{names[0]}.where({arguments['condition']!r})"
        return f"{names[0]}.withColumn({bare(arguments['name'])!r}, f.expr({arguments['call'].text!r}))"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        if arguments["form"] == "filter":
            return f"SELECT * FROM {names[0]} WHERE {arguments['condition']}"
        return f"SELECT *, {arguments['call'].text} AS {arguments['name']} FROM {names[0]}"


OPERATIONS: tuple[Operation, ...] = (
    Select(), WithColumn(), LateralAlias(), Filter(), Sort(), Limit(), Distinct(), Arrange(), Cache(), PythonFunction(),
)  # fmt: skip
