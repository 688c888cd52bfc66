"""Shows the lineage of one task to a person at a terminal, with rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from spark_lineage.cli.terminal_changes import (
    how_written,
    print_catalog_changes,
    print_edges,
    print_unknown,
    print_unread,
)
from spark_lineage.cli.terminal_text import (
    counted,
    dataset_text,
    duration_text,
    heading,
    plain,
    printable,
    size_text,
)
from spark_lineage.secrets.redaction import redact, redact_dataset

if TYPE_CHECKING:
    from rich.console import Console

    from spark_lineage.launch.line import LineCounts
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
    """Print the lineage: header, inputs, outputs, what was done, tried in vain and not told, columns, counts."""
    _print_header(lineage, job, console)
    _print_inputs(lineage, console)
    _print_outputs(lineage, console)
    print_edges(lineage, console)
    print_catalog_changes(lineage, console)
    _print_doubtful(lineage, console)
    print_unknown(lineage, console)
    print_unread(lineage, console)
    for output in lineage.outputs:
        _print_columns(output, console)
    console.print()
    console.print(_counts_line(lineage, counts))


def _print_header(lineage: TaskLineage, job: str, console: Console) -> None:
    console.print(Text.assemble((lineage.state, _STATE_STYLES[lineage.state]), "  ", (printable(job), "bold")))
    for application in lineage.applications:
        console.print(plain(_application_line(application)))
    if lineage.started_at is not None and lineage.ended_at is not None:
        seconds = (lineage.ended_at - lineage.started_at).total_seconds()
        console.print(plain(f"took {duration_text(seconds)}"))


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
    table.add_column("how", overflow="fold")
    _add_numbers(table, "rows", "size", "files")
    for each in lineage.outputs:
        table.add_row(*_names(each), how_written(each), *_statistics(each.statistics))
    console.print(table)
    for each in lineage.outputs:
        if each.previous_name is not None:
            console.print(plain(f"{dataset_text(each.dataset)} was {dataset_text(each.previous_name)}"))


def _print_doubtful(lineage: TaskLineage, console: Console) -> None:
    if lineage.attempted:
        heading("Attempted in vain", console)
        for attempt in lineage.attempted:
            console.print(Text.assemble((attempt.reason, "red"), ": ", plain(dataset_text(attempt.dataset))))
    if lineage.unconfirmed:
        heading("Unconfirmed outputs (success without statistics)", console)
        for name in lineage.unconfirmed:
            console.print(plain(dataset_text(name)))


def _print_columns(output: DatasetLineage, console: Console) -> None:
    lineage = output.column_lineage
    if lineage is None or not (lineage.fields or lineage.dataset):
        return
    heading(f"Columns of {dataset_text(output.dataset)}", console)
    if lineage.fields:
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
        table.add_column(overflow="fold", min_width=8)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold", min_width=30)
        for column, inputs in lineage.fields:
            for index, source in enumerate(inputs):
                table.add_row(plain(column if index == 0 else ""), "<-", plain(_source(source)))
        console.print(table)
    for source in lineage.dataset:
        console.print(Text.assemble(("all columns", "italic"), " <- ", plain(_source(source))))


def _counts_line(lineage: TaskLineage, counts: LineCounts) -> Text:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.set_aside.items()))
    set_aside = f"{sum(counts.set_aside.values()):,} set aside" + (f" ({reasons})" if reasons else "")
    line = plain(f"{counted(counts.read, 'line')} read, {set_aside}, {counted(lineage.run_count, 'Spark run')} merged")
    line.stylize("dim")
    return line


def _table(title: str, rows: int, console: Console) -> Table | None:
    heading(title if rows else f"{title}: none", console)
    return Table(box=None, padding=(0, 2, 0, 0), header_style="dim") if rows else None


def _add_names(table: Table) -> None:
    # No least width, or a narrow terminal would have no column of the last ones.
    table.add_column("dataset", overflow="fold")
    table.add_column("table", overflow="fold")


def _add_numbers(table: Table, *titles: str) -> None:
    for title in titles:
        table.add_column(title, justify="right", overflow="fold")


def _names(dataset: DatasetLineage) -> tuple[Text, Text]:
    return plain(dataset_text(dataset.dataset)), plain(_tables(dataset.symlinks))


def _tables(symlinks: Iterable[Symlink]) -> str:
    return ", ".join(redact_dataset(link.name) for link in symlinks if link.type.upper() == "TABLE") or _UNKNOWN


def _source(source: InputField) -> str:
    how = ", ".join(dict.fromkeys(_transformation(each) for each in source.transformations))
    return f"{dataset_text(source.dataset)}: {source.field}" + (f" ({how})" if how else "")


def _transformation(transformation: Transformation) -> str:
    label = transformation.subtype or transformation.type
    return f"{label}, masked" if transformation.masking else label


def _statistics(statistics: Statistics | None) -> tuple[str, str, str]:
    if statistics is None:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    rows, size, files = statistics.row_count, statistics.size, statistics.file_count
    return (
        _UNKNOWN if rows is None else f"{rows:,}",
        _UNKNOWN if size is None else size_text(size),
        _UNKNOWN if files is None else f"{files:,}",
    )
