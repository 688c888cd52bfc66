"""The ``spark-lineage`` command."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from spark_lineage.cli.output import InputError, abandon_stdout
from spark_lineage.secrets.redaction import redact

_UNREADABLE = 2
_READER_GONE = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :return: 0, or 2 for arguments or input that cannot be used
    """
    arguments = _parser().parse_args(argv)
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    if sys.stdout is None:
        # As Python has it where the shell said ``>&-``.
        print("spark-lineage: cannot write standard output: it is closed", file=sys.stderr)  # noqa: T201
        return _UNREADABLE
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:
        # The reader has had enough (`| head`).
        abandon_stdout()
        return _READER_GONE
    except InputError as error:
        print(f"spark-lineage: {redact(str(error))}", file=sys.stderr)  # noqa: T201
        return _UNREADABLE


def _parser() -> argparse.ArgumentParser:
    # Here, because whoever looks through the package for its modules imports this one, on executors too.
    from spark_lineage.archive.on_executor import installed_version
    from spark_lineage.cli import archive, config, doctor, merge, outbox, replay

    parser = argparse.ArgumentParser(prog="spark-lineage", description="Lineage of Spark tasks, outside of Airflow.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {installed_version() or 'not installed'}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (merge, archive, config, doctor, outbox, replay):
        module.add(commands)
    return parser
