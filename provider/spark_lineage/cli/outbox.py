"""Show what waits for a backend and what was refused; send it, or throw it away."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_lineage.cli.airflow_output import airflow_on_stderr
from spark_lineage.cli.output import STDOUT, InputError, told, write_json, write_line
from spark_lineage.secrets.redaction import redact, redact_value

if TYPE_CHECKING:
    from spark_lineage.deliver.outbox.kept_event import KeptEvent, Waiting
    from spark_lineage.deliver.outbox.outbox import Outbox

# Something waits, or was left, or is not there.
_NOT_ALL = 1
_UNITS = ("B", "kB", "MB", "GB")
_SIGNIFICANT = 1000


def add(commands: Any) -> None:
    """Add ``outbox`` to the command."""
    outbox = commands.add_parser(
        "outbox", help="see, send, and drop events that wait for a backend", description=__doc__
    )
    actions = outbox.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="show what waits and what was refused, by destination")
    shown = listing.add_mutually_exclusive_group()
    shown.add_argument("--dead", action="store_true", help="show each refused event, with the backend's answer")
    shown.add_argument("--waiting", action="store_true", help="show each event that waits")
    listing.set_defaults(run=_list)
    flush = actions.add_parser("flush", help="send what waits; exit code 1 if something still waits")
    flush.add_argument("--seconds", type=_seconds, default=300.0, metavar="N", help="at most so long; default: 300")
    flush.set_defaults(run=_flush)
    retry = actions.add_parser("retry", help="send refused events again, and what waits behind them")
    retry.add_argument("--all", action="store_true", help="all refused events")
    retry.add_argument("--seconds", type=_seconds, default=300.0, metavar="N", help="at most so long; default: 300")
    retry.set_defaults(run=_retry)
    drop = actions.add_parser("drop", help="throw events away, waiting or refused")
    several = drop.add_mutually_exclusive_group()
    several.add_argument("--dead", action="store_true", help="all refused events")
    several.add_argument("--all", action="store_true", help="all events")
    drop.set_defaults(run=_drop)
    for action in (retry, drop):
        action.add_argument("ids", nargs="*", type=int, metavar="ID", help="as list --dead or --waiting shows it")
        action.set_defaults(parser=action)
    for action in (listing, flush, retry):
        action.add_argument("--json", action="store_true", help="print one JSON object")
    for action in (listing, flush, retry, drop):
        action.add_argument(
            "--dir", type=Path, metavar="PATH", help="directory of the outbox; default: as Airflow's configuration says"
        )
        action.add_argument(
            "--destination",
            action="append",
            default=[],
            metavar="ID",
            help="a connection; may be repeated; default: all",
        )


def _list(arguments: argparse.Namespace) -> int:
    is_of_events = arguments.dead or arguments.waiting
    events: list[KeptEvent] = []
    waiting: list[Waiting] = []
    named = arguments.destination
    with _outboxes(arguments) as outboxes:
        for outbox in outboxes:
            if is_of_events:
                events += outbox.events(named, is_dead=arguments.dead)
            else:
                waiting += [one for one in outbox.destinations() if not named or one.destination in named]
        where = ", ".join(str(outbox.directory) for outbox in outboxes)
    if arguments.json:
        name, found = ("events", map(asdict, events)) if is_of_events else ("destinations", map(asdict, waiting))
        write_json({name: redact_value(list(found))})
        return 0
    rows = [*map(_event_row, events), *map(_destination_row, waiting)]
    columns = _EVENT_COLUMNS if is_of_events else _SUMMARY_COLUMNS
    _show(columns, rows, f"Nothing is there{f' in {where}' if where else ': there is no outbox yet'}.")
    return 0


def _flush(arguments: argparse.Namespace) -> int:
    with _outboxes(arguments):
        # Before anything is sent, what is not there is an error.
        pass
    return _flushed(arguments, arguments.destination)


def _retry(arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == arguments.all:
        arguments.parser.error("give the IDs of refused events, or --all")
    is_all = True
    again: list[str] = []
    with _outboxes(arguments) as outboxes:
        for outbox in outboxes:
            events = outbox.events(arguments.destination, ids=arguments.ids, is_dead=True)
            retried = outbox.retry([event.id for event in events])
            is_all = is_all and not _missing(arguments.ids, events)
            again += [event.destination for event in retried]
            _say(f"{len(retried)} events are tried again")
    code = _flushed(arguments, sorted(set(again))) if again else 0
    return code if is_all else _NOT_ALL


def _drop(arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == (arguments.dead or arguments.all):
        arguments.parser.error("give the IDs of events, or --dead, or --all")
    is_all = True
    with _outboxes(arguments) as outboxes:
        for outbox in outboxes:
            is_dead = True if arguments.dead else None
            events = outbox.events(arguments.destination, ids=arguments.ids, is_dead=is_dead)
            is_all = is_all and not _missing(arguments.ids, events)
            _say(f"{outbox.drop([event.id for event in events])} events are thrown away")
    return 0 if is_all else _NOT_ALL


def _flushed(arguments: argparse.Namespace, destinations: Sequence[str]) -> int:
    from spark_lineage.deliver.outbox.outbox import OutboxError, flush

    try:
        with airflow_on_stderr():
            flushed = flush(arguments.dir, destinations, seconds=arguments.seconds)
    except (OutboxError, ValueError) as error:
        raise InputError(str(error)) from error
    if arguments.json:
        write_json({"destinations": [{"destination": name, **asdict(done)} for name, done in flushed.items()]})
    else:
        rows = [
            (name, *map(str, (done.sent, done.waiting, done.refused, done.discarded))) for name, done in flushed.items()
        ]
        _show(("destination", "sent", "waiting", "refused", "too late"), rows, "Nothing waits.")
    return _NOT_ALL if any(done.waiting for done in flushed.values()) else 0


@contextmanager
def _outboxes(arguments: argparse.Namespace) -> Iterator[Sequence[Outbox]]:
    """Return the outbox, none where there is none; it is closed afterwards, and a command that looks makes none.

    :raises InputError: for a directory or a destination that is not there
    """
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.deliver.outbox.database import FILE
    from spark_lineage.deliver.outbox.outbox import Outbox, OutboxError, default_directory

    try:
        with airflow_on_stderr():
            directory = arguments.dir or default_directory()
        if directory.exists() and not directory.is_dir():
            raise InputError(f"the outbox {directory} is no directory; check outbox_dir in [spark_lineage]")
        outboxes = [Outbox(directory)] if (directory / FILE).exists() else []
        if arguments.dir is not None and not outboxes:
            raise InputError(f"there is no outbox in {arguments.dir}")
        try:
            _check(arguments.destination, outboxes)
            yield outboxes
        finally:
            for outbox in outboxes:
                outbox.close()
    except (OutboxError, ValueError) as error:
        raise InputError(str(error)) from error


def _check(destinations: Sequence[str], outboxes: Sequence[Outbox]) -> None:
    """Raise ``ValueError`` for a destination that has nothing in an outbox, and is no connection either."""
    from spark_lineage.deliver.transports.opening import open_transport

    known = {one.destination for outbox in outboxes for one in outbox.destinations()}
    with airflow_on_stderr():
        for destination in set(destinations) - known:
            open_transport(destination).close(0)


_SUMMARY_COLUMNS = ("destination", "waiting", "oldest", "refused", "size", "state")
_EVENT_COLUMNS = ("id", "destination", "type", "job", "run", "since", "size", "tries", "answer")


def _destination_row(one: Waiting) -> Sequence[str]:
    state = f"paused for {one.paused_seconds:.0f} s: {one.answer}" if one.paused_seconds else one.answer
    oldest = _time(one.oldest_at) if one.waiting else ""
    return one.destination, str(one.waiting), oldest, str(one.dead), _size(one.bytes), state


def _event_row(event: KeptEvent) -> Sequence[str]:
    head = event.head
    return (
        *(str(event.id), event.destination, head.event_type, head.job, head.run_id),
        *(_time(event.stored_at), _size(event.size), str(event.attempts), event.answer),
    )


def _show(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Print a table on a terminal; elsewhere a line each, with tabs between its fields."""
    clean = [[" ".join(redact(field).split()) for field in row] for row in rows]
    if not clean:
        _say(nothing)
    elif sys.stdout.isatty():
        table = Table(*columns, box=None, header_style="bold", padding=(0, 2, 0, 0))
        for row in clean:
            table.add_row(*map(Text, row))
        with told(STDOUT):
            Console().print(table)
    else:
        for row in clean:
            write_line("\t".join(row))


def _missing(ids: Sequence[int], events: Sequence[KeptEvent]) -> bool:
    missing = sorted(set(ids) - {event.id for event in events})
    if missing:
        _say(f"not there: {', '.join(map(str, missing))}")
    return bool(missing)


def _say(text: str) -> None:
    print(redact(text), file=sys.stderr)  # noqa: T201


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _size(count: float) -> str:
    unit = 0
    while count >= _SIGNIFICANT and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    # NaN fails the comparison too; a thread cannot wait as long as a float can say.
    if not 0 < seconds <= 1e6:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
