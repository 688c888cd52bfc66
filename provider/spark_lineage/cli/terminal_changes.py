"""Shows a person what a task did: which inputs fed which output, catalog changes, and what nobody can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from spark_lineage.cli.terminal_text import counted, dataset_text, heading, plain
from spark_lineage.secrets.redaction import redact, redact_dataset

if TYPE_CHECKING:
    from rich.console import Console

    from spark_lineage.merge.lineage import CatalogChange, ColumnChange, DatasetLineage, SchemaField, TaskLineage

_NAMED_INPUTS = 10
_USUAL_MODES = frozenset({"", "overwrite", "errorifexists"})


def how_written(output: DatasetLineage) -> Text:
    """What was done to an output, a line each: ``create``, ``insert (append)``, ``overwrite (part)``."""
    kinds = []
    if output.lifecycle is not None and output.lifecycle not in {each.operation for each in output.writes}:
        kinds.append(output.lifecycle.lower())
    for write in output.writes:
        operation = write.operation.lower()
        details = [mode for mode in (write.mode, write.output_mode) if mode not in _USUAL_MODES]
        details += ["part"] if write.is_partial else []
        kinds.append(f"{operation} ({', '.join(details)})" if details else operation)
    return Text("\n").join(plain(kind) for kind in kinds or ["write"])


def print_edges(lineage: TaskLineage, console: Console) -> None:
    """Which inputs fed which output, unless that goes without saying: every output was made from every input."""
    inputs = {each.dataset for each in lineage.inputs}
    if not any(each.fed_by for each in lineage.outputs) or all(set(each.fed_by) >= inputs for each in lineage.outputs):
        return
    heading("Made from", console)
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(overflow="fold", min_width=20)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", min_width=20)
    for output in lineage.outputs:
        sources = [dataset_text(name) for name in output.fed_by[:_NAMED_INPUTS]] or ["no input"]
        if len(output.fed_by) > _NAMED_INPUTS:
            sources.append(f"and {counted(len(output.fed_by) - _NAMED_INPUTS, 'other')}")
        for index, source in enumerate(sources):
            table.add_row(plain("" if index else dataset_text(output.dataset)), "<-", plain(source))
    console.print(table)


def print_catalog_changes(lineage: TaskLineage, console: Console) -> None:
    """What was created, altered, renamed and dropped, in order."""
    if not lineage.catalog_changes:
        return
    heading("Catalog changes", console)
    for change in lineage.catalog_changes:
        console.print(plain(_change(change)))


def print_unknown(lineage: TaskLineage, console: Console) -> None:
    """The commands of which no evidence tells what they wrote."""
    if not lineage.unknown:
        return
    heading("Unknown outputs (nothing tells what these commands wrote)", console)
    for each in lineage.unknown:
        console.print(Text.assemble(plain(redact(each.command)), f", {counted(each.count, 'time')}"))


def print_unread(lineage: TaskLineage, console: Console) -> None:
    """What was not understood of plans."""
    if not lineage.unread:
        return
    heading("Not read in Spark's plans (columns through it are not known)", console)
    for each in lineage.unread:
        console.print(Text.assemble(plain(redact(each.part)), f", in {counted(each.count, 'execution')}"))


def _change(change: CatalogChange) -> str:
    name = redact_dataset(change.name)
    if change.previous_name is not None:
        name = f"{redact_dataset(change.previous_name)} -> {name}"
    details = [_column(each) for each in change.columns]
    if change.properties:
        # Keys alone: values can be long, and the event has them.
        details.append(f"sets {', '.join(redact(key) for key, _ in change.properties)}")
    if change.is_ignored:
        details.append("ignored: nothing changed")
    elif not change.is_certain:
        details.append("it may not have been there")
    text = f"{change.change.lower()} {change.object_type.lower()} {name}"
    return f"{text}: {'; '.join(details)}" if details else text


def _column(change: ColumnChange) -> str:
    if change.old is None or change.new is None:
        return f"adds {_field(change.new)}" if change.new is not None else f"drops {_field(change.old)}"
    return f"{_field(change.old)} -> {_field(change.new)}"


def _field(field: SchemaField | None) -> str:
    return "?" if field is None else f"{field.name} {field.type}" if field.type is not None else field.name
