"""Operations on arrays, maps and structs, and those that turn columns into rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generator.expressions import Draw, Expression
from generator.model import Column, Edges, Frame
from generator.names import bare, is_field, literal
from generator.operation import Arguments, Operation

_PAIR = "array<struct<sku:string,qty:int>>"
# Type of the column, function, types of what it gives.
_GENERATORS = (
    ("array<int>", "explode({})", ("int",)), ("array<string>", "explode({})", ("string",)),
    ("array<int>", "posexplode({})", ("int", "int")), ("array<string>", "explode_outer({})", ("string",)),
    ("map<string,int>", "explode({})", ("string", "int")), (_PAIR, "inline({})", ("string", "int")),
    (_PAIR, "explode({}.sku)", ("string",)), ("string", "explode(split({}, 'a'))", ("string",)),
    ("string", "explode_outer(split({}, 'b'))", ("string",)),
    ("string", "json_tuple({}, 'a', 'b')", ("string", "string")),
    ("array<int>", "posexplode_outer({})", ("int", "int")),
)  # fmt: skip


class Explode(Operation):
    """A row for each element: in the list of a SELECT or by LATERAL VIEW."""

    kind = "explode"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        for kind, text, types in draw.random.sample(_GENERATORS, len(_GENERATORS)):
            name = draw.one(frame, kind)
            if name is None or is_field(name):
                continue
            kept = draw.random.sample(list(frame.columns), min(len(frame.columns), 3))
            made = [(draw.name(), each) for each in types]
            return {"call": Expression(text.format(name), "", (name,)), "kept": kept, "made": made}
        return None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        call = arguments["call"]
        edges, tokens = frame.edges(call.names), frame.tokens(call.names)
        frame = frame.anchored()
        if "_outer" in call.text:
            # It drops no row, though it makes more of some: whether that is a decision is a matter of words.
            frame = replace(frame, rows=frame.rows | edges.optional)
        elif not call.text.startswith("json_tuple"):
            # A row that has nothing to explode is dropped; of json_tuple there is always one.
            frame = frame.decided_by(call.names)
        columns = {name: frame[name] for name in arguments["kept"]}
        columns |= {name: Column(kind, edges, tokens=tokens) for name, kind in arguments["made"]}
        return replace(frame, columns=columns, keys=frozenset(), is_row=False)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        made = [name for name, _ in arguments["made"]]
        called = f"{arguments['call'].text} AS " + (f"({', '.join(made)})" if len(made) > 1 else made[0])
        return f"{names[0]}.selectExpr({', '.join(repr(each) for each in [*arguments['kept'], called])})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        made, text = [name for name, _ in arguments["made"]], arguments["call"].text
        outer = "OUTER " if "_outer" in text else ""
        called = f"LATERAL VIEW {outer}{text.replace('_outer', '')} g AS {', '.join(made)}"
        return f"SELECT {', '.join([*arguments['kept'], *made])} FROM {names[0]} {called}"


class Stack(Operation):
    """Columns become rows: a name and a content of each; by ``stack``, ``unpivot`` or UNPIVOT."""

    kind = "unpivot"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        pair = draw.two(frame, "int", "double", "string", "date")
        if pair is None or any(is_field(name) for name in pair):
            return None
        kept = [name for name in draw.random.sample(list(frame.columns), len(frame.columns)) if name not in pair][:2]
        form = draw.random.choice(["stack", "unpivot"])
        return {"pair": pair, "kept": kept, "names": (draw.name(), draw.name()), "form": form}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        frame, pair = frames[0].anchored(), arguments["pair"]
        key, value = arguments["names"]
        tokens = frame.tokens(pair)
        columns = {name: frame[name] for name in arguments["kept"]}
        edges = frame.edges(pair)
        # The name is a literal of each row, though an event may have it come from all that is given to ``stack``.
        literal = Edges(may=edges.all if arguments["form"] == "stack" else frozenset())
        columns[key] = Column("string", literal, is_plain=False, is_constant=True, tokens=tokens)
        columns[value] = Column(frame[pair[0]].type, edges, tokens=tokens)
        rows = frame.rows | (Edges(may=edges.all) if arguments["form"] == "stack" else Edges())
        return replace(frame, columns=columns, rows=rows, keys=frozenset(), is_row=False)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        pair, kept, (key, value) = (arguments[each] for each in ("pair", "kept", "names"))
        if arguments["form"] == "unpivot":
            return f"{names[0]}.unpivot({kept}, {list(pair)}, {bare(key)!r}, {bare(value)!r})"
        called = f"{self._stack(pair)} AS ({key}, {value})"
        return f"{names[0]}.selectExpr({', '.join(repr(each) for each in [*kept, called])})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        pair, kept, (key, value) = (arguments[each] for each in ("pair", "kept", "names"))
        listed = ", ".join([*kept, key, value])
        if arguments["form"] == "unpivot":
            return f"SELECT {listed} FROM {names[0]} UNPIVOT INCLUDE NULLS ({value} FOR {key} IN ({', '.join(pair)}))"
        return f"SELECT {listed} FROM {names[0]} LATERAL VIEW {self._stack(pair)} g AS {key}, {value}"

    def _stack(self, pair: tuple[str, str]) -> str:
        return f"stack(2, {literal(bare(pair[0]))}, {pair[0]}, {literal(bare(pair[1]))}, {pair[1]})"


class TakeApart(Operation):
    """All fields of a struct."""

    kind = "fields of a struct"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        structs = [name for name, each in frame.columns.items() if each.fields]
        if not structs:
            return None
        name = draw.random.choice(structs)
        kept = [each for each in draw.random.sample(list(frame.columns), len(frame.columns)) if each != name][:3]
        return {"name": name, "kept": [each for each in kept if each not in frame[name].fields]}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        name = arguments["name"]
        columns: Mapping[str, Column] = {part: frame[f"{name}.{part}"] for part in frame[name].fields}
        return replace(frame, columns={**{each: frame[each] for each in arguments["kept"]}, **columns})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.select({', '.join(repr(each) for each in [*arguments['kept'], arguments['name'] + '.*'])})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"SELECT {', '.join([*arguments['kept'], arguments['name'] + '.*'])} FROM {names[0]}"


OPERATIONS: tuple[Operation, ...] = (Explode(), Stack(), TakeApart())
