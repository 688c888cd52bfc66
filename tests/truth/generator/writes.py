"""Steps that read and write datasets: the tables that were there, files and tables of the program's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from generator import sources
from generator.expressions import Draw
from generator.model import Frame, Output
from generator.operation import Arguments, Operation

SIMPLE = ("csv", "json", "orc", "parquet")
NESTED = ("json", "parquet", "parquet", "orc")


class Source(Operation):
    """Read a table that was there."""

    kind = "source"
    reads = 0

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        return sources.reading(arguments["table"])


class ReadBack(Operation):
    """Read what the program has written."""

    kind = "read back"
    reads = 0

    def of(self, draw: Draw, outputs: Mapping[str, Output]) -> Arguments:
        """Arguments for one of the outputs, mostly the last."""
        place = draw.random.choice([*outputs, *[list(outputs)[-1]] * 3])
        form = outputs[place].form
        schema = ", ".join(f"`{name}` {each.type}" for name, each in outputs[place].columns.items())
        return {"place": place, "format": form, "schema": schema}

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        place, form = arguments["place"], arguments["format"]
        if form == "table":
            return f"spark.table({place!r})"
        if form in ("csv", "json"):
            header = ", header=True" if form == "csv" else ""
            return f"spark.read.{form}({place!r}, schema={arguments['schema']!r}{header})"
        return f"spark.read.{form}({place!r})"


class Write(Operation):
    """Write a frame; ``mode`` append adds to what is there, all others begin anew. ``columns`` match those there."""

    def leave(self, arguments: Arguments, frame: Frame, outputs: dict[str, Output]) -> None:
        """Do it in the model."""
        place, renames = arguments["place"], arguments["columns"]
        columns = {name: frame[old] for old, name in renames} if renames else frame.columns
        output = Output.of(replace(frame, columns=columns), arguments["format"])
        outputs[place] = outputs[place].added(output) if arguments["mode"] == "append" else output

    def lines(self, arguments: Arguments, name: str) -> Iterator[str]:
        """The Python of it."""
        raise NotImplementedError

    def chosen(self, arguments: Arguments, name: str) -> str:
        """The DataFrame with the columns that are written."""
        kept = ", ".join(repr(f"{old} AS {new}") for old, new in arguments["columns"])
        return f"{name}.selectExpr({kept})" if kept else name

    def query(self, arguments: Arguments, name: str) -> str:
        """The same as a query."""
        kept = ", ".join(f"{old} AS {new}" for old, new in arguments["columns"]) or "*"
        return f"SELECT {kept} FROM {name}"


class WritePath(Write):
    """Files of a format, by the DataFrame or INSERT OVERWRITE DIRECTORY."""

    kind = "write path"

    def lines(self, arguments: Arguments, name: str) -> Iterator[str]:
        place, form, mode = (arguments[key] for key in ("place", "format", "mode"))
        if mode == "directory":
            yield f'{name}.createOrReplaceTempView("{name}")'
            yield f'spark.sql(r"""INSERT OVERWRITE DIRECTORY \'{place}\' USING {form} {self.query(arguments, name)}""")'
            return
        header = ", header=True" if form == "csv" else ""
        how = f".mode({mode!r})" if mode != "new" else ""
        yield f"{self.chosen(arguments, name)}.write{how}.{form}({place!r}{header})"


class WriteTable(Write):
    """A table: saveAsTable, CREATE TABLE AS SELECT, insertInto, INSERT INTO and INSERT OVERWRITE."""

    kind = "write table"

    def lines(self, arguments: Arguments, name: str) -> Iterator[str]:
        place, mode, way = (arguments[key] for key in ("place", "mode", "way"))
        query = self.query(arguments, name)
        if way in ("ctas", "insert"):
            yield f'{name}.createOrReplaceTempView("{name}")'
        if way == "ctas":
            yield f'spark.sql(r"""CREATE TABLE {place} USING parquet AS {query}""")'
        elif way == "insert":
            word = "INTO" if mode == "append" else "OVERWRITE"
            yield f'spark.sql(r"""INSERT {word} {place} {query}""")'
        elif way == "insertInto":
            overwrite = "" if mode == "append" else ", overwrite=True"
            yield f"{self.chosen(arguments, name)}.write.insertInto({place!r}{overwrite})"
        else:
            how = f".mode({mode!r})" if mode != "new" else ""
            yield f"{self.chosen(arguments, name)}.write{how}.saveAsTable({place!r})"


SOURCE, READ_BACK, WRITE_PATH, WRITE_TABLE = Source(), ReadBack(), WritePath(), WriteTable()
Chosen = tuple[Operation, Arguments, tuple[str, ...], str]


def chosen(
    draw: Draw, program: str, frames: Mapping[str, Frame], outputs: Mapping[str, Output], current: str
) -> Iterator[Chosen]:
    """A write of a frame to a new place, and perhaps an older frame that is added to it or replaces it."""
    number = len(outputs)
    frame = frames[current]
    is_nested = any("<" in each.type for each in frame.columns.values())
    if draw.chance(0.35):
        place = f"{program}_t{number}"
        arguments = {"format": "table", "way": draw.random.choice(["save", "ctas"]), "mode": "new"}
        operation: Write = WRITE_TABLE
    else:
        place = f"out/{program}/{'abcdefgh'[number]}"
        form = draw.random.choice(NESTED if is_nested else SIMPLE)
        mode = draw.random.choice(["new", "new", "overwrite", "append", "directory"])
        arguments, operation = (
            {"format": form, "mode": mode if not (mode == "directory" and form == "csv") else "new"},
            WRITE_PATH,
        )
    is_added = arguments["mode"] == "append"
    if is_added:
        arguments["mode"] = "overwrite"
    yield operation, {**arguments, "place": place, "columns": []}, (current,), ""
    for name, other in list(frames.items())[::-1]:
        renames = _fitting(draw, frame, other) if draw.chance(0.25) and name != current else None
        if renames:
            mode = draw.random.choice(["append", "append", "overwrite"])
            more: dict[str, Any] = {"format": arguments["format"], "place": place, "columns": renames, "mode": mode}
            if operation is WRITE_TABLE:
                more["way"] = draw.random.choice(
                    ["save", "insert", "insertInto"] if mode == "append" else ["insert", "insertInto"]
                )
            yield operation, more, (name,), ""
            return


def _fitting(draw: Draw, frame: Frame, other: Frame) -> list[tuple[str, str]] | None:
    """A column of the other frame for each of this one."""
    found = []
    for name, column in frame.columns.items():
        fit = [
            each
            for each in draw.random.sample(list(other.columns), len(other.columns))
            if other[each].type == column.type
        ]
        if not fit:
            return None
        found.append((fit[0], name))
    return found


def moved(arguments: Arguments, old: str, new: str) -> Arguments:
    """The arguments with the places of another program."""
    place = arguments.get("place")
    if place is None:
        return arguments
    return {**arguments, "place": place.replace(f"out/{old}/", f"out/{new}/").replace(f"{old}_t", f"{new}_t")}
