"""Shows the lineage of one task to a person at a terminal, with rich.

Names come from data: they are never read as rich markup, and no control character of theirs reaches the terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from spark_lineage.emit.redaction import redact, redact_dataset
from spark_lineage.naming.identity import DatasetName

if TYPE_CHECKING:
    from rich.console import Console

    from spark_lineage.collect.line import LineCounts
    from spark_lineage.merge.lineage import (
        Application,
        DatasetLineage,
        InputField,
        Statistics,
        Symlink,
        TaskLineage,
        Transformation,
    )

_STATE_STYLES = {"COMPLETE": "bold green", "FAIL": "bold red", "ABORT": "bold yellow"}
_UNKNOWN = "-"


def render(lineage: TaskLineage, counts: LineCounts, *, job: str, console: Console) -> None:
    """Print the lineage: header, inputs, outputs, what was tried in vain, columns, counts."""
    _print_header(lineage, job, console)
    _print_inputs(lineage, console)
    _print_outputs(lineage, console)
    _print_doubtful(lineage, console)
    for output in lineage.outputs:
        _print_columns(output, console)
    console.print()
    console.print(_counts_line(lineage, counts))


def _print_header(lineage: TaskLineage, job: str, console: Console) -> None:
    console.print(Text.assemble((lineage.state, _STATE_STYLES[lineage.state]), "  ", (_printable(job), "bold")))
    for application in lineage.applications:
        console.print(_text(_application_line(application)))
    if lineage.started_at is not None and lineage.ended_at is not None:
        seconds = (lineage.ended_at - lineage.started_at).total_seconds()
        console.print(_text(f"took {_duration(seconds)}"))


def _application_line(application: Application) -> str:
    parts = [application.application_id or redact(application.job_name)]
    if application.spark_version is not None:
        parts.append(f"Spark {application.spark_version}")
    if application.master is not None:
        parts.append(redact(application.master))
    if application.deploy_mode is not None:
        parts.append(f"{application.deploy_mode} mode")
    if not application.is_ended:
        parts.append("no end reported")
    return ", ".join(parts)


def _print_inputs(lineage: TaskLineage, console: Console) -> None:
    table = _table("Inputs", len(lineage.inputs), console)
    if table is None:
        return
    _add_names(table)
    _add_numbers(table, "columns", "rows", "size")
    for each in lineage.inputs:
        rows, size, _ = _statistics(each.statistics)
        table.add_row(*_names(each), str(len(each.schema)) if each.schema else _UNKNOWN, rows, size)
    console.print(table)


def _print_outputs(lineage: TaskLineage, console: Console) -> None:
    table = _table("Outputs", len(lineage.outputs), console)
    if table is None:
        return
    _add_names(table)
    table.add_column("how", no_wrap=True)
    _add_numbers(table, "rows", "size", "files")
    for each in lineage.outputs:
        table.add_row(*_names(each), _text(_how(each)), *_statistics(each.statistics))
    console.print(table)
    for each in lineage.outputs:
        if each.previous_name is not None:
            console.print(_text(f"{_dataset(each.dataset)} was {_dataset(each.previous_name)}"))


def _print_doubtful(lineage: TaskLineage, console: Console) -> None:
    if lineage.attempted:
        _heading("Attempted in vain", console)
        for attempt in lineage.attempted:
            console.print(Text.assemble((attempt.reason, "red"), ": ", _text(_dataset(attempt.dataset))))
    if lineage.unconfirmed:
        _heading("Unconfirmed outputs (success without statistics)", console)
        for name in lineage.unconfirmed:
            console.print(_text(_dataset(name)))


def _print_columns(output: DatasetLineage, console: Console) -> None:
    lineage = output.column_lineage
    if lineage is None or not (lineage.fields or lineage.dataset):
        return
    _heading(f"Columns of {_dataset(output.dataset)}", console)
    if lineage.fields:
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
        table.add_column(overflow="fold", min_width=8)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold", min_width=30)
        for column, inputs in lineage.fields:
            for index, source in enumerate(inputs):
                table.add_row(_text(column if index == 0 else ""), "<-", _text(_source(source)))
        console.print(table)
    for source in lineage.dataset:
        console.print(Text.assemble(("all columns", "italic"), " <- ", _text(_source(source))))


def _counts_line(lineage: TaskLineage, counts: LineCounts) -> Text:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.set_aside.items()))
    set_aside = f"{sum(counts.set_aside.values()):,} set aside" + (f" ({reasons})" if reasons else "")
    line = _text(f"{_count(counts.read, 'line')} read, {set_aside}, {_count(lineage.run_count, 'Spark run')} merged")
    line.stylize("dim")
    return line


def _table(title: str, rows: int, console: Console) -> Table | None:
    _heading(title if rows else f"{title}: none", console)
    return Table(box=None, padding=(0, 2, 0, 0), header_style="dim") if rows else None


def _heading(title: str, console: Console) -> None:
    console.print()
    console.print(Text(_printable(title), style="bold"))


def _add_names(table: Table) -> None:
    table.add_column("dataset", overflow="fold", min_width=20)
    table.add_column("table", overflow="fold", min_width=8)


def _add_numbers(table: Table, *titles: str) -> None:
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)


def _names(dataset: DatasetLineage) -> tuple[Text, Text]:
    return _text(_dataset(dataset.dataset)), _text(_tables(dataset.symlinks))


def _tables(symlinks: Iterable[Symlink]) -> str:
    return ", ".join(redact_dataset(link.name) for link in symlinks if link.type.upper() == "TABLE") or _UNKNOWN


def _dataset(dataset: DatasetName) -> str:
    """The dataset as a person writes it: a bare path for files, else namespace and name as one URL."""
    namespace, name = redact_dataset(dataset.namespace), redact_dataset(dataset.name)
    return name if namespace == "file" else f"{namespace.rstrip('/')}/{name.lstrip('/')}"


def _how(output: DatasetLineage) -> str:
    return (output.lifecycle or "write").lower()


def _source(source: InputField) -> str:
    how = ", ".join(dict.fromkeys(_transformation(each) for each in source.transformations))
    return f"{_dataset(source.dataset)}: {source.field}" + (f" ({how})" if how else "")


def _transformation(transformation: Transformation) -> str:
    label = transformation.subtype or transformation.type
    return f"{label}, masked" if transformation.masking else label


def _statistics(statistics: Statistics | None) -> tuple[str, str, str]:
    if statistics is None:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    rows, size, files = statistics.row_count, statistics.size, statistics.file_count
    return (
        _UNKNOWN if rows is None else f"{rows:,}",
        _UNKNOWN if size is None else _size(size),
        _UNKNOWN if files is None else f"{files:,}",
    )


def _size(size: int) -> str:
    """Bytes in the units that Spark's UI has: ``1.5 MiB``."""
    if size < 1024:  # noqa: PLR2004
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        # 1023.95 would be rounded up to "1024.0".
        if amount < 1023.95:  # noqa: PLR2004
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:,.1f} PiB"


def _duration(seconds: float) -> str:
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _text(text: str) -> Text:
    return Text(_printable(text), overflow="fold")


def _printable(text: str) -> str:
    """The text with control, format and surrogate characters written as escapes, so that they do nothing."""
    return "".join(
        char if unicodedata.category(char)[0] != "C" and char not in "\u2028\u2029" else ascii(char)[1:-1]
        for char in text
    )
