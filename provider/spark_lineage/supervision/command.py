"""Check whether the servers of a Spark connection are up. Exit code 1 if one is down, or the connection names none."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_json, print_line

if TYPE_CHECKING:
    from spark_lineage.supervision.health import Server

_NOT_WELL = 1


def add(commands: Any) -> None:
    """Add ``health`` to the command."""
    health = commands.add_parser("health", help="ask whether Spark's servers are up", description=__doc__)
    health.add_argument(
        "--conn-id", default="spark_default", metavar="ID", help="Spark connection; default: %(default)s"
    )
    health.add_argument("--json", action="store_true", help="print one JSON object")
    health.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    with airflow_on_stderr():
        servers = _servers(arguments.conn_id)
    if arguments.json:
        print_json({"servers": [asdict(one) for one in servers]})
    else:
        for one in servers:
            first, style = ("up", "green") if one.is_up else ("down", "bold red")
            print_line(" ".join(_described(one).split()), first=first, first_style=style)
    return 0 if servers and all(one.is_up for one in servers) else _NOT_WELL


def _described(server: Server) -> str:
    numbers = [(server.running, "running"), (server.completed, "completed")]
    texts = [f"{server.name} at {server.url}: {server.state}", *(f"{n} {what}" for n, what in numbers if n is not None)]
    if server.missing:
        count, first = len(server.missing), server.missing[0]
        behind = f"behind by {server.behind_seconds:.0f} s"
        texts.append(f"{behind}: of {count} that ended within the last hour it does not know the end, first of {first}")
    return ", ".join(texts)


def _servers(conn_id: str) -> list[Server]:
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.settings.places import Places
    from spark_lineage.supervision.health import ask_servers, endpoints_of

    try:
        has_connection, endpoints = Places.of(conn_id, {}).has_connection, endpoints_of(conn_id)
    except Exception as error:
        raise InputError(f"the connection {conn_id} cannot be used: {type(error).__name__}: {error}") from error
    if not has_connection:
        raise InputError(f"there is no connection {conn_id}; give that of the tasks with --conn-id")
    if not (found := ask_servers(endpoints, time.time())):
        raise InputError(f"the connection {conn_id} names no server: set history_server_url in its extra")
    return found
