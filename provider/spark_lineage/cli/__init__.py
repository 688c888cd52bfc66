"""The ``spark-lineage`` command."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from spark_lineage.cli.output import InputError, print_note

_UNREADABLE = 2
_READER_GONE = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return 0, or 2 for arguments or input that cannot be used."""
    arguments = _parser().parse_args(argv)
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
    from spark_lineage.deliver.sender import Later, Refused
    from spark_lineage.deliver.spool import SpoolError
    from spark_lineage.naming.options import NamingError
    from spark_lineage.settings import SettingError

    return InputError, Later, NamingError, Refused, SettingError, SpoolError


def _parser() -> argparse.ArgumentParser:
    # Here, because whoever looks through the package for its modules imports this one, on executors too.
    from spark_lineage import add_ons

    try:
        installed = version("airflow-provider-spark-lineage")
    except PackageNotFoundError:
        installed = "not installed"
    parser = argparse.ArgumentParser(prog="spark-lineage", description="Lineage of Spark tasks, outside of Airflow.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {installed}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in add_ons.commands():
        module.add(commands)
    return parser
