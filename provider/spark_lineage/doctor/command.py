"""Look for problems that lose lineage. Run it where tasks run, as their user. Exit code 1 if there is a problem."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from spark_lineage.cli.output import REPEATED, InputError, airflow_on_stderr, print_json, print_line

if TYPE_CHECKING:
    from spark_lineage.doctor.setup import Finding, Setup

_WOULD_LOSE = 1
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def add(commands: Any) -> None:
    """Add ``doctor`` to the command."""
    doctor = commands.add_parser("doctor", help="look for what would lose lineage", description=__doc__)
    doctor.add_argument(
        "--conn-id",
        **REPEATED,
        metavar="ID",
        help="openlineage or atlas connection, repeatable; default: those of the settings",
    )
    doctor.add_argument("--spark-conn-id", default="spark_default", metavar="ID", help="default: %(default)s")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    found, output = [], sys.stdout
    with airflow_on_stderr():
        for name, finding in findings(arguments.spark_conn_id, arguments.conn_id):
            found.append({"check": name, **asdict(finding)})
            if not arguments.json:
                remedy = f" -> {finding.remedy}" if finding.remedy else ""
                line = " ".join(f"{name}: {finding.text}{remedy}".split())
                print_line(line, first=finding.level, first_style=_STYLES[finding.level], file=output)
    if arguments.json:
        print_json({"findings": found})
    return _WOULD_LOSE if any(one["level"] == "problem" for one in found) else 0


def findings(spark_conn_id: str, conn_ids: Sequence[str] = ()) -> Iterator[tuple[str, Finding]]:
    """Return what each check finds, with its name, one after another."""
    # On purpose here: it imports Airflow, which takes seconds.
    from spark_lineage.doctor.checks import checks_for, run_check

    setup = setup_of(spark_conn_id, conn_ids)
    for check in checks_for(setup):
        for finding in run_check(setup, check):
            yield check.name, finding


def setup_of(spark_conn_id: str, conn_ids: Sequence[str] = ()) -> Setup:
    """Return what the settings and a Spark connection say; raises ``InputError`` where they cannot be read."""
    from spark_lineage.doctor.setup import Setup

    try:
        return Setup.of(spark_conn_id, conn_ids)
    except Exception as error:
        raise InputError(f"the settings cannot be read: {type(error).__name__}: {error}") from error
