"""Shows the lineage of one task to a person at a terminal, with rich.

Names come from data: they are never read as rich markup, and no control character of theirs reaches the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.json import decode
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from spark_lineage.cli.output import printable
from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import redact_name

if TYPE_CHECKING:
    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.lineage import (
        Application,
        CatalogChange,
        ColumnChange,
        DatasetLineage,
        InputField,
        SchemaField,
        Statistics,
        TaskLineage,
        Transformation,
    )

    Row = Sequence[str]

_STATE_STYLES = {"COMPLETE": "bold green", "FAIL": "bold red", "ABORT": "bold yellow"}
_UNKNOWN = "-"
_ARROW = "<-"
_NUMBERS = ("columns", "rows", "size", "files")
_NAMED_INPUTS = 10
_USUAL_MODES = frozenset({"", "overwrite", "errorifexists"})


def print_lineage(lineage: TaskLineage, counts: LineCounts, *, namespace: str, name: str, as_json: bool) -> None:
    """Print the lineage without secrets: as JSON on one line, or for a person."""
    # Names of datasets and columns stay, which are no texts.
    namespace, name = redact_name(namespace), redact_name(name)
    if as_json:
        job, numbers = {"namespace": namespace, "name": name}, {"read": counts.read, "set_aside": counts.set_aside}
        content = {"job": job, "lineage": to_builtins(redact_lineage(lineage), enc_hook=decode), "lines": numbers}
        print(json.dumps(content))  # noqa: T201
    else:
        render(lineage, counts, job=f"{namespace} {name}", console=Console())


def render(lineage: TaskLineage, counts: LineCounts, *, job: str, console: Console) -> None:
    """Print the lineage without secrets: a header, a table for each of its parts, and how many lines were read."""
    lineage = redact_lineage(lineage)
    console.print(Text.assemble((lineage.state, _STATE_STYLES[lineage.state]), "  ", (printable(job), "bold")))
    for application in lineage.applications:
        console.print(_text(_application(application)))
    if lineage.started_at is not None and lineage.ended_at is not None:
        seconds = round((lineage.ended_at - lineage.started_at).total_seconds())
        console.print(_text(f"took {timedelta(seconds=seconds)}"))
    for title, columns, rows in _parts(lineage):
        console.print()
        console.print(Text(printable(title), style="bold"))
        if rows:
            console.print(_table(columns, rows))
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.set_aside.items()))
    set_aside = f"{sum(counts.set_aside.values()):,} set aside" + (f" ({reasons})" if reasons else "")
    witnesses = " and ".join(each.replace("_", " ") for each in lineage.evidence) or "nothing"
    merged = f"{_counted(lineage.run_count, 'Spark run')} merged, evidence: {witnesses}"
    line = f"{_counted(counts.read, 'line')} read, {set_aside}, {merged}"
    console.print()
    console.print(Text(printable(line), style="dim"))


def _parts(lineage: TaskLineage) -> Iterator[tuple[str, Row, Sequence[Row]]]:
    """Return title, columns and rows of all that there is to show; columns without a title have no header."""
    inputs = [
        (*_names(each), f"{len(each.schema)}" if each.schema else _UNKNOWN, *_statistics(each.statistics)[:2])
        for each in lineage.inputs
    ]
    outputs = [(*_names(each), how_written(each), *_statistics(each.statistics)) for each in lineage.outputs]
    yield f"Inputs{'' if inputs else ': none'}", ("dataset", "table", "columns", "rows", "size"), inputs
    yield f"Outputs{'' if outputs else ': none'}", ("dataset", "table", "how", "rows", "size", "files"), outputs
    lists = {
        "Renamed": [
            f"{_dataset(each.dataset)} was {_dataset(each.previous_name)}"
            for each in lineage.outputs
            if each.previous_name is not None
        ],
        "Catalog changes": [_change(each) for each in lineage.catalog_changes],
        "Attempted in vain": [f"{each.reason}: {_dataset(each.dataset)}" for each in lineage.attempted],
        "Unconfirmed outputs (success without statistics)": [_dataset(name) for name in lineage.unconfirmed],
        "Unknown outputs (what these commands wrote is not known)": [
            f"{each.command}, {_counted(each.count, 'time')}" for each in lineage.unknown
        ],
        "Not read in Spark's plans (columns through it are not known)": [
            f"{each.part}, in {_counted(each.count, 'execution')}" for each in lineage.unread
        ],
    }
    arrows = {"Made from": list(_edges(lineage))}
    arrows |= {f"Columns of {_dataset(each.dataset)}": list(_columns(each)) for each in lineage.outputs}
    yield from ((title, ("", _ARROW, ""), rows) for title, rows in arrows.items() if rows)
    yield from ((title, ("",), [(line,) for line in lines]) for title, lines in lists.items() if lines)


def _table(columns: Row, rows: Sequence[Row]) -> Table:
    has_header = bool(columns[0])
    padding = (0, 2 if has_header else 1, 0, 0)
    table = Table(box=None, padding=padding, header_style="dim", show_header=has_header)
    for title in columns:
        # No least width, or a narrow terminal would have no column of the last ones.
        is_number = title in _NUMBERS
        table.add_column(title, overflow="fold", no_wrap=title == _ARROW, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def how_written(output: DatasetLineage) -> str:
    """Say what was done to an output: ``create, insert (append)``, ``overwrite (part)``."""
    kinds = []
    if output.lifecycle is not None and output.lifecycle not in {each.operation for each in output.writes}:
        kinds.append(output.lifecycle.lower())
    for write in output.writes:
        details = [mode for mode in (write.mode, write.output_mode) if mode not in _USUAL_MODES]
        details += ["part"] if write.is_partial else []
        kinds.append(f"{write.operation.lower()} ({', '.join(details)})" if details else write.operation.lower())
    return ", ".join(kinds or ["write"])


def _edges(lineage: TaskLineage) -> Iterator[Row]:
    """Return which inputs fed which output, unless that goes without saying: every output was made from every input."""
    inputs = {each.dataset for each in lineage.inputs}
    if not any(each.fed_by for each in lineage.outputs) or all(set(each.fed_by) >= inputs for each in lineage.outputs):
        return
    for output in lineage.outputs:
        sources = [_dataset(name) for name in output.fed_by[:_NAMED_INPUTS]] or ["no input"]
        if len(output.fed_by) > _NAMED_INPUTS:
            sources.append(f"and {_counted(len(output.fed_by) - _NAMED_INPUTS, 'other')}")
        yield from _arrows(_dataset(output.dataset), sources)


def _columns(output: DatasetLineage) -> Iterator[Row]:
    if output.column_lineage is not None:
        for column, inputs in output.column_lineage.fields:
            yield from _arrows(column, map(_source, inputs))
        yield from _arrows("all columns", map(_source, output.column_lineage.dataset))


def _arrows(target: str, sources: Iterable[str]) -> Iterator[Row]:
    for index, source in enumerate(sources):
        yield "" if index else target, _ARROW, source


def _source(source: InputField) -> str:
    how = ", ".join(dict.fromkeys(_transformation(each) for each in source.transformations))
    return f"{_dataset(source.dataset)}: {source.field}" + (f" ({how})" if how else "")


def _transformation(transformation: Transformation) -> str:
    label = transformation.subtype or transformation.type
    return f"{label}, masked" if transformation.masking else label


def _application(application: Application) -> str:
    parts = (
        application.application_id or application.job_name,
        application.spark_version and f"Spark {application.spark_version}",
        application.master and application.master,
        application.deploy_mode and f"{application.deploy_mode} mode",
        "" if application.is_ended else "no end reported",
    )
    return ", ".join(filter(None, parts))


def _names(dataset: DatasetLineage) -> Row:
    tables = [link.name for link in dataset.symlinks if link.type.upper() == "TABLE"]
    return _dataset(dataset.dataset), ", ".join(tables) or _UNKNOWN


def _statistics(statistics: Statistics | None) -> Row:
    if statistics is None:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    rows, size, files = statistics.row_count, statistics.size, statistics.file_count
    return (
        _UNKNOWN if rows is None else f"{rows:,}",
        _UNKNOWN if size is None else decimal(size),
        _UNKNOWN if files is None else f"{files:,}",
    )


def _change(change: CatalogChange) -> str:
    name = change.name
    if change.previous_name is not None:
        name = f"{change.previous_name} -> {name}"
    details = [_column_change(each) for each in change.columns]
    if change.properties:
        # Keys alone: values can be long, and the event has them.
        details.append(f"sets {', '.join(key for key, _ in change.properties)}")
    if change.is_ignored:
        details.append("ignored: nothing changed")
    elif not change.is_certain:
        details.append("it may not have been there")
    text = f"{change.change.lower()} {change.object_type.lower()} {name}"
    return f"{text}: {'; '.join(details)}" if details else text


def _column_change(change: ColumnChange) -> str:
    if change.old is None or change.new is None:
        return f"adds {_field(change.new)}" if change.new is not None else f"drops {_field(change.old)}"
    return f"{_field(change.old)} -> {_field(change.new)}"


def _field(field: SchemaField | None) -> str:
    return "?" if field is None else f"{field.name} {field.type}" if field.type is not None else field.name


def _dataset(dataset: DatasetName) -> str:
    """Return the dataset as a person writes it: a bare path for files, else namespace and name as one URL."""
    namespace, name = dataset.namespace.rstrip("/"), dataset.name
    return name if namespace == "file" else f"{namespace}/{name.lstrip('/')}"


def _text(text: str) -> Text:
    return Text(printable(text), overflow="fold")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
