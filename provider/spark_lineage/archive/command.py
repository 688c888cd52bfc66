"""``spark-lineage archive merge``: merge any number of lineage files and event logs, on Spark."""

from __future__ import annotations

from typing import Any

from spark_lineage.archive.job import add_arguments, run


def add(commands: Any) -> None:
    """Add ``archive`` to the command."""
    archive = commands.add_parser("archive", help="merge years of lineage files and event logs on Spark")
    archive_commands = archive.add_subparsers(required=True, metavar="COMMAND")
    merge = archive_commands.add_parser(
        "merge",
        help="give one RunEvent for each task, and tables of all of them",
        description="Merge lineage files and event logs of any number of tasks on Spark: one RunEvent for each "
        "task, and tables. What an earlier run has read, and has not changed since, is not read again.",
    )
    add_arguments(merge)
    merge.set_defaults(run=run)
