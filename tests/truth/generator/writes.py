"""Steps that read and write datasets: the tables that were there, files and tables of the program's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from generator import sources
from generator.expressions import Draw
from generator.model import Frame, Output
from generator.names import bare, is_field, query_text
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
        schema = ", ".join(
            f"`{bare(name).replace('`', '``')}` {each.type}" for name, each in outputs[place].columns.items()
        )
        return {"place": place, "format": form, "schema": schema}

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        place, form = arguments["place"], arguments["format"]
        if form == "table":
            return f"spark.table({place!r})"
        if form in ("csv", "json"):
            header = ", header=True" if form == "csv" else ""
            return f"spark.read.{form}({place!r}, schema={arguments['schema']!r}{header})"
        # What is partitioned and has no row has no file to take a schema from.
        return f"spark.read.schema({arguments['schema']!r}).{form}({place!r})"


class Write(Operation):
    """Write a frame; ``mode`` append adds to what is there, all others begin anew. ``columns`` match those there."""

    def leave(self, arguments: Arguments, frame: Frame, outputs: dict[str, Output]) -> None:
        """Do it in the model."""
        place, renames = arguments["place"], arguments["columns"]
        columns = {name: frame[old] for old, name in renames} if renames else frame.columns
        written, partition = replace(frame, columns=columns), arguments.get("partition")
        if partition:
            # Reading gives that column last.
            others = {name: each for name, each in columns.items() if name != partition}
            # That makes a sort within partitions superfluous.
            order = frame.order.optional
            written = replace(frame, columns={**others, partition: columns[partition]}, order=order)
        output = Output.of(written, arguments["format"])
        is_added = arguments["mode"] == "append" and place in outputs
        outputs[place] = outputs[place].added(output) if is_added else output

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
            sql = f"INSERT OVERWRITE DIRECTORY '{place}' USING {form} {self.query(arguments, name)}"
            yield f"spark.sql({query_text(sql)})"
            return
        header = ", header=True" if form == "csv" else ""
        how = f".mode({mode!r})" if mode != "new" else ""
        how += f".partitionBy({bare(arguments['partition'])!r})" if arguments["partition"] else ""
        yield f"{self.chosen(arguments, name)}.write{how}.{form}({place!r}{header})"


class WriteTable(Write):
    """A table: saveAsTable, CREATE TABLE AS SELECT, insertInto, INSERT INTO and INSERT OVERWRITE."""

    kind = "write table"

    def lines(self, arguments: Arguments, name: str) -> Iterator[str]:
        place, mode, way = (arguments[key] for key in ("place", "mode", "way"))
        query = self.query(arguments, name)
        if way in ("ctas", "insert", "columns"):
            yield f'{name}.createOrReplaceTempView("{name}")'
        if way == "ctas":
            yield f"spark.sql({query_text(f'CREATE TABLE {place} USING parquet AS {query}')})"
        elif way == "insert":
            word = "INTO" if mode == "append" else "OVERWRITE"
            yield f"spark.sql({query_text(f'INSERT {word} {place} {query}')})"
        elif way == "columns":
            # The list of columns says where each goes.
            turned = arguments["columns"][::-1]
            listed, kept = (", ".join(pair[at] for pair in turned) for at in (1, 0))
            yield f"spark.sql({query_text(f'INSERT INTO {place} ({listed}) SELECT {kept} FROM {name}')})"
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
    operation, arguments = (_to_table if draw.chance(0.35) else _to_path)(draw, program, number, frames[current])
    yield operation, {**arguments, "columns": []}, (current,), ""
    for name, other in list(frames.items())[::-1]:
        renames = _fitting(draw, frames[current], other) if draw.chance(0.25) and name != current else None
        if renames:
            mode = draw.random.choice(["append", "append", "overwrite"])
            more = {**arguments, "columns": renames, "mode": mode}
            if "way" in more:
                ways = ["save", "insert", "insertInto", "columns"] if mode == "append" else ["insert", "insertInto"]
                more["way"] = draw.random.choice(ways)
            yield operation, more, (name,), ""
            return


def _to_table(draw: Draw, program: str, number: int, _: Frame) -> tuple[Write, Arguments]:
    way = draw.random.choice(["save", "ctas"])
    return WRITE_TABLE, {"format": "table", "way": way, "mode": "new", "place": f"{program}_t{number}"}


def _to_path(draw: Draw, program: str, number: int, frame: Frame) -> tuple[Write, Arguments]:
    is_nested = any("<" in each.type for each in frame.columns.values())
    form = draw.random.choice(NESTED if is_nested else SIMPLE)
    mode = draw.random.choice(["new", "new", "overwrite", "append", *(["directory"] if form != "csv" else [])])
    by = draw.one(frame, "int")
    is_partitioned = by and not is_field(by) and len(frame.columns) > 1 and mode != "directory" and draw.chance(0.15)
    place = f"out/{program}/{'abcdefgh'[number]}"
    return WRITE_PATH, {"format": form, "mode": mode, "place": place, "partition": by if is_partitioned else None}


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
