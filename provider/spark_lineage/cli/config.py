"""Show every setting, its value, and where it was set; secrets are masked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from spark_lineage.cli.airflow_output import airflow_on_stderr
from spark_lineage.cli.operator_arguments import Task, find_task
from spark_lineage.cli.output import InputError, write_json, write_line
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from spark_lineage.doctor.report import Told

_DOES_NOT_FIT = 1
_DEFAULT_CONN_ID = "spark_default"


def add(commands: Any) -> None:
    """Add ``config`` to the command."""
    config = commands.add_parser(
        "config", help="print every setting, its value, and where it was set", description=__doc__
    )
    config.add_argument(
        "--spark-conn-id", metavar="ID", help=f"Spark connection; default: that of the task, else {_DEFAULT_CONN_ID}"
    )
    config.add_argument("--dag", metavar="ID", help="with --task: its arguments count too, before they are rendered")
    config.add_argument("--task", metavar="ID")
    config.add_argument("--json", action="store_true", help="print one JSON object")
    config.set_defaults(run=_run, parser=config)


def _run(arguments: argparse.Namespace) -> int:
    if bool(arguments.dag) != bool(arguments.task):
        arguments.parser.error("--dag and --task are given together")
    with airflow_on_stderr():
        told, notes = _read(arguments)
    if arguments.json:
        write_json({key: [asdict(one) for one in rows] for key, rows in told.items()} | {"notes": notes})
    elif sys.stdout.isatty():
        _show(told, notes)
    else:
        for row in (row for rows in told.values() for row in rows):
            write_line(_line(row))
        for note in notes:
            write_line(f"note: {note}")
    return _DOES_NOT_FIT if any(row.error for rows in told.values() for row in rows) else 0


def _read(arguments: argparse.Namespace) -> tuple[dict[str, list[Told]], list[str]]:
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.doctor.report import endpoints_told, options_told, settings_told
    from spark_lineage.doctor.unknown_settings import unknown_settings, unreadable
    from spark_lineage.settings.places import Places, section

    task = find_task(arguments.dag, arguments.task) if arguments.dag else Task({}, "")
    conn_id = arguments.spark_conn_id or task.conn_id or _DEFAULT_CONN_ID
    try:
        places = Places.of(conn_id, task.arguments)
        told = {
            "settings": list(settings_told(places, conn_id)),
            "options": list(options_told(places, conn_id)),
            "endpoints": list(endpoints_told(places, conn_id)),
        }
        notes = [*task.notes, *unknown_settings(section(), places.extra, conn_id)]
    except Exception as error:
        hint = "".join(
            f"; {name} is no variable that Airflow reads: take it out, or write all of it in capitals"
            for name in unreadable()
        )
        raise InputError(f"the settings cannot be read: {redact(f'{type(error).__name__}: {error}')}{hint}") from error
    if not places.has_connection:
        notes.insert(0, f"Airflow gives no connection {conn_id} here: the Spark provider submits to YARN then.")
    return told, notes


def _show(told: Mapping[str, Sequence[Told]], notes: Sequence[str]) -> None:
    # Folded, or a long path would be cut short.
    columns = [Column(name, overflow="fold") for name in ("setting", "value", "where it was set")]
    table = Table(*columns, box=None, header_style="bold")
    for rows in told.values():
        for row in rows:
            style = "red" if row.error else "dim" if row.source == "default" else ""
            table.add_row(*(Text(text, style=style) for text in (row.name, _text(row.value), row.source)))
            if row.error:
                table.add_row("", Text(row.error, style="red"), "")
    console = Console()
    console.print(table)
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))


def _line(row: Told) -> str:
    line = f"{row.name} = {_text(row.value)}  ({row.source})"
    return f"{line}  does not fit: {row.error}" if row.error else line


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.replace("\n", "\\n") if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
