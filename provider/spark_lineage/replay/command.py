"""``spark-lineage replay``: send merged events again, to backends that have lost them, or are new."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spark_lineage.cli.output import (
    REPEATED,
    InputError,
    above_zero,
    airflow_on_stderr,
    print_fields,
    print_note,
    shown,
)
from spark_lineage.deliver.stored_event import event_time
from spark_lineage.launch.line import LineCounts
from spark_lineage.replay.merged_events import events_in

if TYPE_CHECKING:
    from spark_lineage.deliver.profile import Profile
    from spark_lineage.replay.merged_events import MergedEvent
    from spark_lineage.replay.replay import Tally

_NOT_ALL = 1
_INTERRUPTED = 130
_TIMES = "2026-01-31, 2026-01-31T12:00Z, or 90m, 12h, 7d, 2w"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# How many of the events that were not taken are named.
_NAMED = 20


def add(commands: Any) -> None:
    """Add ``replay`` to the command."""
    replay = commands.add_parser(
        "replay",
        help="send merged events again; exit code 1 if any was not accepted",
        description="Send merged events again, in order, at a bounded rate. Duplicates are sent once.",
    )
    replay.add_argument(
        "paths", nargs="+", metavar="PATH", help="lineage directory, NDJSON file of merged events, or glob"
    )
    replay.add_argument("--conn-id", **REPEATED, metavar="ID", help="openlineage connection, repeatable")
    replay.add_argument("--since", type=_since, metavar="TIME", help=f"only events of this time or later: {_TIMES} ago")
    replay.add_argument(
        "--rate", type=above_zero, default=20.0, metavar="N", help="events a second, at most; default: %(default)g"
    )
    replay.add_argument("--dry-run", action="store_true", help="only list what would be sent")
    replay.set_defaults(run=_run, parser=replay)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.conn_id and not arguments.dry_run:
        arguments.parser.error("give the connections to send to with --conn-id, or --dry-run")
    steps = _steps(arguments)
    if not arguments.dry_run:
        return _send(arguments, steps)
    for step in steps:
        time = step.time.astimezone(UTC).isoformat().replace("+00:00", "Z")
        print_fields(time, step.event_type or "-", step.run_id, step.job)
    return 0


def _steps(arguments: argparse.Namespace) -> Sequence[MergedEvent]:
    from spark_lineage.replay.replay import in_order

    counts = LineCounts()
    try:
        steps = in_order(events_in(arguments.paths, arguments.since, counts))
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error
    if not counts.read:
        raise InputError(f"no event in the {counts.set_aside_total} lines of {' '.join(arguments.paths)}")
    print_note(f"{counts.read} events read, {counts.set_aside_total} lines set aside, {len(steps)} to send")
    for reason, number in sorted(counts.set_aside.items()):
        print_note(f"  {number} {reason}")
    return steps


def _send(arguments: argparse.Namespace, steps: Sequence[MergedEvent]) -> int:
    """Send, with a bar on standard error; an interruption leaves the counts."""
    code = 0
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
    numbers = count(1)

    def print_once(text: str) -> None:
        number = next(numbers)
        if number <= _NAMED:
            console.print(shown(text))
        if number == _NAMED:
            console.print("Further events that are not taken are only counted.")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # The connections are Airflow's, and what it logs when it reads them is not the answer of the command.
    with airflow_on_stderr():
        # On purpose here: it imports Airflow, which takes seconds.
        from spark_lineage.deliver.connections import open_sender
        from spark_lineage.replay.replay import Replay

        replay = Replay(steps, _destinations(arguments.conn_id), open_sender, rate=arguments.rate, log=print_once)
        with closing(replay):
            try:
                with Progress(*columns, console=console) as progress:
                    for _ in progress.track(replay.run(), total=len(steps), description="Sending"):
                        pass
            except KeyboardInterrupt:
                code = _INTERRUPTED
    for destination, tally in replay.tallies.items():
        print_fields(_result(destination, tally, is_interrupted=code == _INTERRUPTED))
    return code or (_NOT_ALL if any(tally.sent < tally.total for tally in replay.tallies.values()) else 0)


def _destinations(conn_ids: Sequence[str]) -> Mapping[str, Profile]:
    """Return the destinations of the connections, each with what its events are encoded for."""
    from spark_lineage.deliver.connections import destinations_of

    return {
        destination: profile
        for conn_id in dict.fromkeys(conn_ids)
        for destination, (_, profile) in destinations_of(conn_id).items()
    }


def _result(destination: str, tally: Tally, *, is_interrupted: bool) -> str:
    text = f"{destination}: {tally.sent} sent, {tally.refused} refused, {tally.left} left"
    if tally.left and is_interrupted:
        return f"{text} (interrupted; the same command sends all again)"
    return f"{text} ({tally.problem})" if tally.problem else text


def _since(text: str) -> datetime:
    try:
        if unit := _UNITS.get(text[-1:]):
            return datetime.now(UTC) - timedelta(**{unit: int(text[:-1])})
        return event_time(text if "T" in text else f"{text}T00:00")
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: give {_TIMES}") from None
