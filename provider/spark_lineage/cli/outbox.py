"""Show which events wait for a backend and which were refused; send them, or delete them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from spark_lineage.cli.output import REPEATED, InputError, above_zero, airflow_on_stderr, print_json, printable, say
from spark_lineage.secrets.redaction import redact, redact_value

if TYPE_CHECKING:
    from spark_lineage.deliver.outbox.kept_event import KeptEvent, Waiting
    from spark_lineage.deliver.outbox.outbox import Outbox

# Something waits, or was left, or is not there.
_NOT_ALL = 1
_DESTINATION_COLUMNS = ("destination", "waiting", "oldest", "refused", "size", "state")
_EVENT_COLUMNS = ("id", "destination", "type", "job", "run", "since", "size", "tries", "answer")
_FLUSHED_COLUMNS = ("destination", "sent", "waiting", "refused", "too late")


def add(commands: Any) -> None:
    """Add ``outbox`` to the command."""
    outbox = commands.add_parser(
        "outbox", help="see, send, and drop events that wait for a backend", description=__doc__
    )
    actions = outbox.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("list", _list, "show what waits and what was refused, by destination"),
        ("flush", _flush, "send what waits; exit code 1 if something still waits"),
        ("retry", _retry, "send refused events again, and those that wait behind them"),
        ("drop", _drop, "delete events, waiting or refused"),
    ):
        action = actions.add_parser(name, help=text)
        action.set_defaults(run=run, parser=action)
        action.add_argument("--dir", type=Path, metavar="PATH", help="of the outbox; default: as Airflow is configured")
        action.add_argument("--destination", **REPEATED, metavar="ID", help="a connection, repeatable; default: all")
        if name != "drop":
            action.add_argument("--json", action="store_true", help="print one JSON object")
        if name in ("list", "drop"):
            action.add_argument("--dead", action="store_true", help="each refused event, with the backend's answer")
        if name == "list":
            action.add_argument("--waiting", action="store_true", help="each event that waits")
        if name in ("flush", "retry"):
            action.add_argument("--seconds", type=above_zero, default=300.0, metavar="N", help="default: 300")
        if name in ("retry", "drop"):
            action.add_argument("ids", nargs="*", type=int, metavar="ID", help="as list --dead or --waiting shows it")
            action.add_argument("--all", action="store_true", help="all refused events (retry), all events (drop)")


def _list(arguments: argparse.Namespace) -> int:
    named = arguments.destination
    with _outbox(arguments) as outbox:
        nothing = f"There are no events in {outbox.directory}." if outbox is not None else "There is no outbox yet."
        if arguments.dead or arguments.waiting:
            events = outbox.events(named, is_dead=arguments.dead) if outbox is not None else []
            content = {"events": list(map(asdict, events))}
            _show(arguments, content, _EVENT_COLUMNS, list(map(_event_row, events)), nothing)
        else:
            there = outbox.destinations() if outbox is not None else []
            waiting = [one for one in there if not named or one.destination in named]
            content = {"destinations": list(map(asdict, waiting))}
            _show(arguments, content, _DESTINATION_COLUMNS, list(map(_destination_row, waiting)), nothing)
    return 0


def _flush(arguments: argparse.Namespace) -> int:
    with _outbox(arguments):
        # Before anything is sent, what is not there is an error.
        pass
    return _flushed(arguments, arguments.destination)


def _retry(arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == arguments.all:
        arguments.parser.error("give the IDs of refused events, or --all")
    with _outbox(arguments) as outbox:
        events = _named(arguments, outbox, is_dead=True)
        retried = outbox.retry([event.id for event in events]) if outbox is not None else []
    say(f"{len(retried)} events are tried again")
    code = _flushed(arguments, sorted({event.destination for event in retried})) if retried else 0
    return code if len(events) >= len(set(arguments.ids)) else _NOT_ALL


def _drop(arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == (arguments.dead or arguments.all):
        arguments.parser.error("give the IDs of events, or --dead, or --all")
    with _outbox(arguments) as outbox:
        events = _named(arguments, outbox, is_dead=True if arguments.dead else None)
        dropped = outbox.drop([event.id for event in events]) if outbox is not None else 0
    say(f"{dropped} events are deleted")
    return 0 if len(events) >= len(set(arguments.ids)) else _NOT_ALL


def _named(arguments: argparse.Namespace, outbox: Outbox | None, *, is_dead: bool | None) -> Sequence[KeptEvent]:
    """Return the events that are asked for; report unknown ids."""
    events = outbox.events(arguments.destination, ids=arguments.ids, is_dead=is_dead) if outbox is not None else []
    if missing := sorted(set(arguments.ids) - {event.id for event in events}):
        say(f"no such event: {', '.join(map(str, missing))}")
    return events


def _flushed(arguments: argparse.Namespace, destinations: Sequence[str]) -> int:
    from spark_lineage.deliver.outbox.outbox import flush

    with airflow_on_stderr():
        flushed = flush(arguments.dir, destinations, seconds=arguments.seconds)
    content = [{"destination": name, **asdict(delivered)} for name, delivered in flushed.items()]
    rows = [[str(value) for value in row.values()] for row in content]
    _show(arguments, {"destinations": content}, _FLUSHED_COLUMNS, rows, "Nothing waits.")
    return _NOT_ALL if any(delivered.waiting for delivered in flushed.values()) else 0


@contextmanager
def _outbox(arguments: argparse.Namespace) -> Iterator[Outbox | None]:
    """Return the outbox, None where there is none; it is closed afterwards, and a command that looks makes none.

    :raises InputError: for a directory or a destination that is not there
    """
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.deliver.outbox.database import FILE
    from spark_lineage.deliver.outbox.outbox import Outbox, default_directory
    from spark_lineage.deliver.transports.opening import open_transport

    with ExitStack() as stack:
        with airflow_on_stderr():
            directory = arguments.dir or default_directory()
        if directory.exists() and not directory.is_dir():
            raise InputError(f"the outbox {directory} is not a directory; check outbox_dir in [spark_lineage]")
        outbox = None
        if (directory / FILE).exists():
            outbox = stack.enter_context(closing(Outbox(directory)))
        elif arguments.dir is not None:
            raise InputError(f"there is no outbox in {arguments.dir}")
        known = {one.destination for one in outbox.destinations()} if outbox is not None else set()
        for destination in set(arguments.destination) - known:
            # Raises for what is no connection either.
            with airflow_on_stderr():
                open_transport(destination).close(0)
        yield outbox


def _destination_row(one: Waiting) -> Sequence[str]:
    state = f"paused for {one.paused_seconds:.0f} s: {one.answer}" if one.paused_seconds else one.answer
    oldest = _time(one.oldest_at) if one.waiting else ""
    return one.destination, str(one.waiting), oldest, str(one.dead), decimal(one.bytes), state


def _event_row(event: KeptEvent) -> Sequence[str]:
    head = event.head
    return (
        *(str(event.id), event.destination, head.event_type, head.job, head.run_id),
        *(_time(event.stored_at), decimal(event.size), str(event.attempts), event.answer),
    )


def _show(
    arguments: argparse.Namespace,
    content: Mapping[str, Sequence[Any]],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    nothing: str,
) -> None:
    """Print the content as JSON, or its rows: as a table on a terminal, elsewhere as lines with tabs."""
    clean = [[printable(" ".join(redact(field).split())) for field in row] for row in rows]
    if arguments.json:
        print_json(redact_value(content))
    elif not clean:
        say(nothing)
    elif sys.stdout.isatty():
        table = Table(*columns, box=None, header_style="bold", padding=(0, 2, 0, 0))
        for row in clean:
            table.add_row(*map(Text, row))
        Console().print(table)
    else:
        for row in clean:
            print(*row, sep="\t")  # noqa: T201


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
