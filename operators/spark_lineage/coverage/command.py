"""List each task that runs Spark, and whether its lineage is whole. Run it where Airflow's database is configured."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_json, print_note, print_table

_VERDICTS = ("whole", "counted", "none", "unknown")


def add(commands: Any) -> None:
    """Add ``coverage`` to the command."""
    coverage = commands.add_parser("coverage", help="list the Spark tasks, and which lack lineage", description=__doc__)
    coverage.add_argument("--verdict", choices=_VERDICTS, help="those of this verdict; default: all")
    coverage.add_argument("--json", action="store_true", help="print one JSON object")
    coverage.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    with airflow_on_stderr():
        # On purpose here: they import Airflow, which takes seconds.
        from sqlalchemy.exc import SQLAlchemyError

        from spark_lineage.coverage.tasks_coverage import coverage, totals

        try:
            rows = coverage()
        except SQLAlchemyError as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"Airflow's database cannot be read: {type(error).__name__}: {reason}") from error
    counts = totals(rows)
    rows = [row for row in rows if arguments.verdict in (None, row.verdict)]
    if arguments.json:
        print_json({"tasks": list(map(asdict, rows)), "totals": counts})
        return 0
    fields = [(row.operator, f"{row.dag_id}.{row.task_id}", row.verdict, row.why) for row in rows]
    print_table(("operator", "task", "verdict", "why"), fields)
    for operator, each in counts.items():
        print_note(f"{operator}: " + ", ".join(f"{count} {verdict}" for verdict, count in each.items() if count))
    if not counts:
        print_note("No task of the installation runs Spark.")
    return 0
