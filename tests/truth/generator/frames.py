"""Operations that only the DataFrame has: it renames, drops and fills columns, and gives rows to Python as a whole."""

from __future__ import annotations

from dataclasses import replace

from generator.expressions import Draw
from generator.model import Column, Frame
from generator.names import bare, is_field
from generator.operation import Arguments, Operation


class Rename(Operation):
    """Another name for a column, or for each."""

    kind = "rename"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        names = list(frames[0].columns)
        number = draw.random.choice([1, 1, 2, len(names)])
        return {"names": [(name, draw.name()) for name in draw.random.sample(names, min(number, len(names)))]}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        names = dict(arguments["names"])
        if not names.keys() <= frame.columns.keys():
            raise KeyError(str(names))
        return replace(frame, columns={names.get(name, name): each for name, each in frame.columns.items()})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.withColumnsRenamed({ {bare(old): bare(new) for old, new in arguments['names']} })"


class Drop(Operation):
    """Without some of the columns."""

    kind = "drop"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        names = list(frames[0].columns)
        return {"names": draw.random.sample(names, min(2, len(names) - 1))} if len(names) > 1 else None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        return frame.only([name for name in frame.columns if name not in arguments["names"]])

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.drop({', '.join(repr(bare(name)) for name in arguments['names'])})"


class Fill(Operation):
    """A constant in the place of what is null: whether it is depends on the column, too."""

    kind = "fill"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        name = draw.one(frame, "string", "int")
        if name is None or is_field(name) or not frame[name].is_nullable:
            return None
        return {"name": name, "value": draw.odd_text() if frame[name].type == "string" else 0}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        name = arguments["name"]
        edges = frame[name].edges
        filled = Column(frame[name].type, edges | edges.deciding, tokens=frame[name].tokens)
        return replace(frame, columns={**frame.columns, name: filled})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return f"{names[0]}.na.fill({ {bare(arguments['name']): arguments['value']} })"


class PythonRows(Operation):
    """A Python function of rows, or of the rows of a group: each column is made from all of its input."""

    kind = "python rows"

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        (frame,) = frames
        names = [name for name in draw.names_of(frame, "string", "double") if not is_field(name)][:3]
        if not names or frame.is_row:
            return None
        return {
            "names": names,
            "by": draw.random.choice([None, names[0]]),
            "types": [frame[name].type for name in names],
        }

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (frame,) = frames
        names, by = arguments["names"], arguments["by"]
        edges, tokens = frame.edges(names), frame.tokens(names) | frame.needed
        frame = frame.anchored()
        if by:
            frame = frame.decided_by([by])
        columns = {
            name: Column(kind, edges, tokens=tokens) for name, kind in zip(names, arguments["types"], strict=True)
        }
        return replace(frame, columns=columns, keys=frozenset())

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(arguments["names"], arguments["types"], strict=True))
        kept = f"{names[0]}.selectExpr({', '.join(map(repr, arguments['names']))})"
        if arguments["by"]:
            return f"{kept}.groupBy({arguments['by']!r}).applyInPandas(lambda group: group, {schema!r})"
        return f"{kept}.mapInPandas(lambda batches: batches, {schema!r})"

    def smaller(self, arguments: Arguments) -> list[Arguments]:
        return []


OPERATIONS: tuple[Operation, ...] = (Rename(), Drop(), Fill(), PythonRows())
