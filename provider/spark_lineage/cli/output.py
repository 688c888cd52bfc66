"""Shared by the commands: how they print and report errors, and how they import Airflow."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_lineage.secrets.redaction import redact, redact_value

# Of an argument that may be repeated.
REPEATED: dict[str, Any] = {"action": "append", "default": []}
_MAX_NUMBER = 100_000.0


class InputError(Exception):
    """Input that cannot be used; the text says what and why."""


def print_note(text: str) -> None:
    """Print to standard error, secrets masked."""
    print(redact(text), file=sys.stderr)  # noqa: T201


def print_json(value: Any) -> None:
    """Print one JSON object, on one line, secrets masked."""
    print(json.dumps(redact_value(value)))  # noqa: T201


def print_fields(*fields: str) -> None:
    """Print a line with tabs between its fields, each as it is shown."""
    print(*map(shown, fields), sep="\t")  # noqa: T201


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows: as a table on a terminal, elsewhere as lines with tabs."""
    if not sys.stdout.isatty():
        for row in rows:
            print_fields(*row)
        return
    table = Table(*columns, box=None, header_style="bold", padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(shown(field)) for field in row))
    Console().print(table)


def print_line(
    text: str, style: str = "", *, first: str = "", first_style: str = "", file: IO[str] | None = None
) -> None:
    """Print a whole line, secrets masked, with colours on a terminal; names are never markup.

    :param first: comes before the text, in a column of eight, in a style of its own
    :param file: default: standard output as it is now, which within ``airflow_on_stderr`` is standard error
    """
    console = Console(file=file or sys.stdout, soft_wrap=True, highlight=False, markup=False, emoji=False)
    console.print(Text.assemble((f"{first:8}" if first else "", first_style), (printable(redact(text)), style)))


def shown(text: str) -> str:
    """Return text as it is shown: one line without secrets, in which nothing moves a terminal."""
    return printable(" ".join(redact(text).split()))


def printable(text: str) -> str:
    """Return text whose control, format and surrogate characters are escapes, so that they do nothing."""
    return "".join(
        char if unicodedata.category(char)[0] != "C" and char not in "\u2028\u2029" else ascii(char)[1:-1]
        for char in text
    )


def above_zero(text: str) -> float:
    """Read an argument that is a number above 0.

    :raises argparse.ArgumentTypeError: for another; a thread cannot wait as long as a float can say
    """
    with contextlib.suppress(ValueError):
        # NaN fails the comparison.
        if 0 < float(text) <= _MAX_NUMBER:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, and at most {_MAX_NUMBER:,.0f}")


@contextlib.contextmanager
def airflow_on_stderr() -> Iterator[None]:
    """Have Airflow read connections as its own command does (``airflow connections get``), and log warnings alone.

    They go to standard error: Airflow takes what is standard output when it is imported, and keeps it.
    """
    # Where Airflow 3 looks for connections: without it, a process that is no task sees none of the database.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    os.environ.setdefault("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING")
    with contextlib.redirect_stdout(sys.stderr):
        yield
