"""``spark-lineage doctor``: look for what would lose lineage, before it does."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from spark_lineage.cli.airflow_output import airflow_on_stderr
from spark_lineage.cli.output import STDOUT, InputError, told, write_json
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from spark_lineage.doctor.finding import Finding

_WOULD_LOSE = 1
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def add(commands: Any) -> None:
    """Add ``doctor`` to the command."""
    doctor = commands.add_parser(
        "doctor",
        help="look for what would lose lineage; run it where tasks run, as their user",
        description="Looks for what would lose lineage. Run it where tasks run, as the user that they run as. "
        "Exit code 1 when something would.",
    )
    doctor.add_argument(
        "--conn-id",
        action="append",
        default=[],
        metavar="ID",
        help="openlineage connection to test, may be repeated; default: those of openlineage_conn_id",
    )
    doctor.add_argument("--spark-conn-id", default="spark_default", metavar="ID", help="default: %(default)s")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.json:
        return _run_for_machine(arguments)
    is_terminal = sys.stdout.isatty()
    stdout, levels = sys.stdout, set()
    console = Console(file=stdout)
    # Folded, or a long path would be cut short.
    columns = [Column(name, overflow="fold") for name in ("", "what", "found", "what to do")]
    table = Table(*columns, box=None, header_style="bold", padding=(0, 2, 0, 0))
    with airflow_on_stderr(), console.status("looking …") if is_terminal else contextlib.nullcontext():
        for name, finding in _findings(arguments):
            levels.add(finding.level)
            if is_terminal:
                level = Text(finding.level, style=_STYLES[finding.level])
                table.add_row(level, *map(Text, (name, finding.text, finding.remedy)))
            else:
                with told(STDOUT):
                    stdout.buffer.write(_line(name, finding).encode(errors="backslashreplace"))
                    stdout.buffer.flush()
    if is_terminal:
        with told(STDOUT):
            console.print(table)
    return _WOULD_LOSE if "problem" in levels else 0


def _run_for_machine(arguments: argparse.Namespace) -> int:
    with airflow_on_stderr():
        found = [{"check": name, **asdict(finding)} for name, finding in _findings(arguments)]
    write_json({"findings": found})
    return _WOULD_LOSE if any(one["level"] == "problem" for one in found) else 0


def _findings(arguments: argparse.Namespace) -> Iterator[tuple[str, Finding]]:
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.doctor.check import run_check
    from spark_lineage.doctor.checks import checks_for
    from spark_lineage.doctor.setup import Setup

    try:
        setup = Setup.of(arguments.spark_conn_id, arguments.conn_id)
    except Exception as error:
        raise InputError(redact(f"the settings cannot be read: {type(error).__name__}: {error}")) from error
    for check in checks_for(setup):
        for finding in run_check(setup, check):
            yield check.name, finding


def _line(name: str, finding: Finding) -> str:
    text = " ".join(f"{finding.text} -> {finding.remedy}".split() if finding.remedy else finding.text.split())
    return f"{finding.level:8}{name}: {text}\n"
