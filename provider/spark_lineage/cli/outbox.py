"""Show what waits for a backend and what was refused; send it, or throw it away."""

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
        ("retry", _retry, "send refused events again, and what waits behind them"),
        ("drop", _drop, "throw events away, waiting or refused"),
    ):
        action = actions.add_parser(name, help=text)
        action.set_defaults(run=run, parser=action)
        action.add_argument("--dir", type=Path, metavar="PATH", help="of the outbox; default: as Airflow is configured")
        action.add_argument(
            "--destination", **REPEATED, metavar="ID", help="a connection, or [openlineage], repeatable; default: all"
        )
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
        if name == "retry":
            forced = "also a START or RUNNING of a run that has ended: it shows as running again"
            action.add_argument("--force", action="store_true", help=forced)


def _list(arguments: argparse.Namespace) -> int:
    named = arguments.destination
    events: list[KeptEvent] = []
    waiting: list[Waiting] = []
    with _outboxes(arguments) as outboxes:
        for outbox in outboxes:
            if arguments.dead or arguments.waiting:
                events += outbox.events(named, is_dead=arguments.dead)
            else:
                waiting += [one for one in outbox.destinations() if not named or one.destination in named]
        where = ", ".join(str(outbox.directory) for outbox in outboxes)
    nothing = f"Nothing is there in {where}." if where else "Nothing is there: there is no outbox yet."
    if arguments.dead or arguments.waiting:
        content = {"events": list(map(asdict, events))}
        _show(arguments, content, _EVENT_COLUMNS, list(map(_event_row, events)), nothing)
    else:
        content = {"destinations": list(map(asdict, waiting))}
        _show(arguments, content, _DESTINATION_COLUMNS, list(map(_destination_row, waiting)), nothing)
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
    again: set[str] = set()
    with _outboxes(arguments) as outboxes:
        for outbox in outboxes:
            events = _named(arguments, outbox, is_dead=True)
            retried = outbox.retry([event.id for event in events], is_forced=arguments.force)
            for event in retried.late:
                say(
                    f"{event.id} is left: it is a {event.head.event_type} of run {event.head.run_id}, whose end "
                    f"{event.destination} has; --force sends it all the same"
                )
            is_all = is_all and not retried.late and len(events) >= len(set(arguments.ids))
            again |= {event.destination for event in retried.waiting}
            say(f"{len(retried.waiting)} events are tried again")
    code = _flushed(arguments, sorted(again)) if again else 0
    return code if is_all else _NOT_ALL


def _drop(arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == (arguments.dead or arguments.all):
        arguments.parser.error("give the IDs of events, or --dead, or --all")
    is_all = True
    with _outboxes(arguments) as outboxes:
        for outbox in outboxes:
            events = _named(arguments, outbox, is_dead=True if arguments.dead else None)
            is_all = is_all and len(events) >= len(set(arguments.ids))
            say(f"{outbox.drop([event.id for event in events])} events are thrown away")
    return 0 if is_all else _NOT_ALL


def _named(arguments: argparse.Namespace, outbox: Outbox, *, is_dead: bool | None) -> Sequence[KeptEvent]:
    """Return the events that are asked for; ids that are not there are said."""
    events = outbox.events(arguments.destination, ids=arguments.ids, is_dead=is_dead)
    if missing := sorted(set(arguments.ids) - {event.id for event in events}):
        say(f"not there: {', '.join(map(str, missing))}")
    return events


def _flushed(arguments: argparse.Namespace, destinations: Sequence[str]) -> int:
    from spark_lineage.deliver.outbox.flushing import flush

    directories = None if arguments.dir is None else [arguments.dir]
    with _refusing(), airflow_on_stderr():
        flushed = flush(directories, destinations, seconds=arguments.seconds)
    content = [{"destination": one.destination, **asdict(one.delivered)} for one in flushed]
    rows = [[str(value) for value in row.values()] for row in content]
    _show(arguments, {"destinations": content}, _FLUSHED_COLUMNS, rows, "Nothing waits.")
    return _NOT_ALL if any(one.delivered.waiting for one in flushed) else 0


@contextmanager
def _outboxes(arguments: argparse.Namespace) -> Iterator[Sequence[Outbox]]:
    """Return the outboxes that are there, which are closed afterwards; a command that looks makes none.

    :raises InputError: for a directory or a destination that is not there
    """
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.deliver.outbox.database import FILE
    from spark_lineage.deliver.outbox.flushing import known_directories, open_destination
    from spark_lineage.deliver.outbox.outbox import Outbox

    with _refusing(), ExitStack() as stack:
        with airflow_on_stderr():
            directories = [arguments.dir] if arguments.dir is not None else known_directories()
        for directory in directories:
            if directory.exists() and not directory.is_dir():
                raise InputError(f"the outbox {directory} is no directory; check outbox_dir in [spark_lineage]")
        found = [directory for directory in directories if (directory / FILE).exists()]
        outboxes = [stack.enter_context(closing(Outbox(directory))) for directory in found]
        if arguments.dir is not None and not outboxes:
            raise InputError(f"there is no outbox in {arguments.dir}")
        if getattr(arguments, "ids", None) and len(outboxes) > 1:
            raise InputError(f"ids are those of one outbox: give --dir, one of {', '.join(map(str, found))}")
        known = {one.destination for outbox in outboxes for one in outbox.destinations()}
        for destination in set(arguments.destination) - known:
            # Raises for what is no connection either.
            with airflow_on_stderr():
                open_destination(destination).close(0)
        yield outboxes


@contextmanager
def _refusing() -> Iterator[None]:
    from spark_lineage.deliver.outbox.kept_event import OutboxError

    try:
        yield
    except (OutboxError, ValueError) as error:
        raise InputError(str(error)) from error


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
