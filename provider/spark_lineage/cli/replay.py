"""``spark-lineage replay``: send merged events again, to backends that have lost them, or are new."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spark_lineage.cli.airflow_output import airflow_on_stderr
from spark_lineage.cli.output import STDOUT, InputError, told
from spark_lineage.deliver.kept_events import KeptEventsError, events_in
from spark_lineage.deliver.stored_event import event_time
from spark_lineage.launch.line import LineCounts
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from spark_lineage.deliver.kept_events import MergedEvent as Step
    from spark_lineage.deliver.replay import Replay, Tally

_NOT_ALL = 1
_INTERRUPTED = 130
_RATE = 20.0
_MAX_RATE = 100_000.0
_AGO = re.compile(r"(?P<number>\d{1,5})(?P<unit>[mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# How many of the events that were not taken are named.
_NAMED = 20


def add(commands: Any) -> None:
    """Add ``replay`` to the command."""
    replay = commands.add_parser(
        "replay",
        help="send merged events again; exit code 1 if any was not taken",
        description="Send merged events again, in order, at a bounded rate. What is there twice is sent once.",
    )
    replay.add_argument(
        "paths", nargs="+", metavar="PATH", help="lineage directory, NDJSON file of merged events, or glob"
    )
    replay.add_argument(
        "--conn-id", action="append", default=[], metavar="ID", help="openlineage connection; may be repeated"
    )
    replay.add_argument(
        "--since",
        type=_since,
        metavar="TIME",
        help="only events of this time or later: 2026-01-31, 2026-01-31T12:00Z, or 90m, 12h, 7d, 2w ago",
    )
    replay.add_argument(
        "--rate", type=_rate, default=_RATE, metavar="N", help="events a second, at most; default: %(default)g"
    )
    replay.add_argument("--dry-run", action="store_true", help="only list what would be sent")
    replay.set_defaults(run=_run, parser=replay)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.conn_id and not arguments.dry_run:
        arguments.parser.error("give the connections to send to with --conn-id, or --dry-run")
    steps = _steps(arguments)
    if arguments.dry_run:
        _list(steps)
        return 0
    notes = _Notes()
    # The connections are Airflow's, and what it logs when it reads them is not the answer of the command.
    with airflow_on_stderr(), _opened(arguments, steps, notes) as replay:
        try:
            _send(replay, len(steps), notes)
        except KeyboardInterrupt:
            code = _INTERRUPTED
        else:
            code = _NOT_ALL if any(tally.sent < tally.total for tally in replay.tallies.values()) else 0
    with told(STDOUT):
        for destination, tally in replay.tallies.items():
            print(_line(destination, tally, is_interrupted=code == _INTERRUPTED))  # noqa: T201
        sys.stdout.flush()
    return code


def _steps(arguments: argparse.Namespace) -> Sequence[Step]:
    from spark_lineage.deliver.replay import in_order

    counts = LineCounts()
    try:
        steps = in_order(events_in(arguments.paths, arguments.since, counts))
    except KeptEventsError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error
    if not counts.read:
        raise InputError(f"no event in the {counts.set_aside_total} lines of {' '.join(arguments.paths)}")
    _say(f"{counts.read} events read, {counts.set_aside_total} lines set aside, {len(steps)} to send")
    for reason, number in sorted(counts.set_aside.items()):
        _say(f"  {number} {reason}")
    return steps


def _list(steps: Sequence[Step]) -> None:
    with told(STDOUT):
        for step in steps:
            fields = (_utc(step.time), step.event_type or "-", step.run_id, " ".join(redact(step.job).split()))
            sys.stdout.buffer.write("\t".join(fields).encode(errors="backslashreplace") + b"\n")
        sys.stdout.buffer.flush()


@contextmanager
def _opened(arguments: argparse.Namespace, steps: Sequence[Step], notes: _Notes) -> Iterator[Replay]:
    # On purpose here: it imports Airflow, which takes seconds.
    from spark_lineage.deliver.replay import Replay
    from spark_lineage.deliver.transports.opening import open_transport

    try:
        replay = Replay(steps, _destinations(arguments.conn_id), open_transport, rate=arguments.rate, tell=notes.add)
    except SettingError as error:
        raise InputError(str(error)) from error
    try:
        yield replay
    finally:
        replay.close()


def _destinations(conn_ids: Sequence[str]) -> Mapping[str, str | None]:
    """Return the destinations of the connections, each with the namespace that its jobs get."""
    from spark_lineage.deliver.hooks.openlineage import OpenLineageHook
    from spark_lineage.deliver.transports.opening import destinations_of

    return {
        destination: OpenLineageHook(conn_id).namespace
        for conn_id in dict.fromkeys(conn_ids)
        for destination in destinations_of(conn_id)
    }


class _Notes:
    """What the person who waits is told; beyond some, refusals are only counted."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        if self._count <= _NAMED:
            self.console.print(" ".join(redact(text).split()))
        if self._count == _NAMED:
            self.console.print("Further events that are not taken are only counted.")


def _send(replay: Replay, total: int, notes: _Notes) -> None:
    """Send, with a bar on a terminal, and a line for every tenth elsewhere."""
    if notes.console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=notes.console) as progress:
            bar = progress.add_task("Sending", total=total)
            for number in replay.run():
                progress.update(bar, completed=number)
        return
    told_of = 0
    for number in replay.run():
        if number * 10 // total > told_of:
            told_of = number * 10 // total
            notes.console.print(f"{number} of {total} events")


def _line(destination: str, tally: Tally, *, is_interrupted: bool) -> str:
    text = f"{destination}: {tally.sent} sent, {tally.refused} refused, {tally.left} left"
    if tally.left and is_interrupted:
        return f"{text} (interrupted; the same command sends all again)"
    return f"{text} ({' '.join(tally.problem.split())})" if tally.is_given_up else text


def _say(text: str) -> None:
    print(redact(text), file=sys.stderr)  # noqa: T201


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _since(text: str) -> datetime:
    if (ago := _AGO.fullmatch(text)) is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago["unit"]]: int(ago["number"])})
    try:
        return event_time(text if "T" in text else f"{text}T00:00")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: give 2026-01-31, 2026-01-31T12:00Z, or 90m, 12h, 7d, 2w"
        ) from None


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    # NaN fails the comparison too.
    if not 0 < rate <= _MAX_RATE:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of events a second above 0")
    return rate
