# PYTHON_ARGCOMPLETE_OK
"""The ``spark-lineage`` command."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from spark_lineage.cli.output import InputError, print_note

_UNREADABLE = 2
_READER_GONE = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return 0, or 2 for arguments or input that cannot be used."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:
        # The shell completes a line. Airflow requires argcomplete.
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    if sys.stdout is None:
        # As Python has it where the shell said ``>&-``.
        print_note("spark-lineage: cannot write standard output: it is closed")
        return _UNREADABLE
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that knows only ASCII shows the escape of a character, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except _refusals() as error:
        print_note(f"spark-lineage: {error}")
        return _UNREADABLE
    except OSError as error:
        # What the interpreter still flushes at its end goes nowhere, or it would complain too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            # The reader has had enough (`| head`).
            return _READER_GONE
        print_note(f"spark-lineage: {error.filename or 'standard output'}: {error.strerror}")
        return _UNREADABLE
    return code


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors whose text says what cannot be used, and what to do; imported where one was raised."""
    from spark_lineage.deliver.outgoing import SpoolError
    from spark_lineage.deliver.sender import Later, Refused
    from spark_lineage.naming.options import NamingError
    from spark_lineage.settings import SettingError

    return InputError, Later, NamingError, Refused, SettingError, SpoolError


class _Parser(argparse.ArgumentParser):
    """Suggest the nearest command or choice for a misspelt one, as Python 3.14 can."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if near := get_close_matches(str(value), map(str, action.choices or ()), n=1):
                error.message += f"; did you mean {near[0]!r}?"
            raise


def _parser() -> argparse.ArgumentParser:
    # Here, because whoever looks through the package for its modules imports this one, on executors too.
    from spark_lineage import add_ons

    try:
        installed = version("airflow-provider-spark-lineage")
    except PackageNotFoundError:
        installed = "not installed"
    parser = _Parser(prog="spark-lineage", description="Lineage of Spark tasks, outside of Airflow.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {installed}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in add_ons.commands():
        module.add(commands)
    return parser
