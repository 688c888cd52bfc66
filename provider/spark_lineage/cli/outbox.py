"""Show which events wait for a backend and which were refused; send them, or delete them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from spark_lineage.cli.output import (
    REPEATED,
    InputError,
    above_zero,
    airflow_on_stderr,
    print_json,
    print_note,
    print_table,
)

if TYPE_CHECKING:
    from spark_lineage.deliver.outbox import Outbox, Waiting
    from spark_lineage.deliver.spool import Entry, Spool

    _Events = tuple[str, Spool, Sequence[Entry]]
    """Some events of a destination, with its spool."""

# Something waits, or was left, or is not there.
_NOT_ALL = 1
_DESTINATION_COLUMNS = ("destination", "waiting", "oldest", "refused", "size", "state")
_EVENT_COLUMNS = ("id", "destination", "type", "job", "run", "since", "size", "answer")
_FLUSHED_COLUMNS = ("destination", "sent", "waiting", "refused")


@dataclass(frozen=True)
class _Listed:
    """One event that waits, or that was refused; ``id`` is the name of its file up to the dot."""

    id: str
    destination: str
    event_type: str
    job: str
    run_id: str
    stored_at: float
    size: int
    is_dead: bool
    answer: str


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
        action.add_argument("--dir", type=Path, metavar="PATH", help="of a user's outbox; default: outbox_dir/UID")
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
            action.add_argument("ids", nargs="*", metavar="ID", help="as list --dead or --waiting shows it")
            action.add_argument("--all", action="store_true", help="all refused events (retry), all events (drop)")


def _list(arguments: argparse.Namespace) -> int:
    named = arguments.destination
    with _outbox(arguments) as outbox:
        others = ", ".join(each.name for each in outbox.others())
        nothing = f"There are no events in {outbox.directory}." + (
            f" Other users have some: {others}." if others else ""
        )
        if arguments.dead or arguments.waiting:
            events = [
                listed
                for destination, spool, entries in _events(outbox, named, is_dead=arguments.dead)
                for listed in _listed(destination, spool, entries, is_dead=arguments.dead)
            ]
            content = {"events": list(map(asdict, events))}
            _show(arguments, content, _EVENT_COLUMNS, list(map(_event_row, events)), nothing)
        else:
            waiting = [one for one in outbox.destinations() if not named or one.destination in named]
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
        found = _named(arguments, _events(outbox, arguments.destination, is_dead=True))
        retried = {destination: len(spool.retry(entries)) for destination, spool, entries in found}
    print_note(f"{sum(retried.values())} events are tried again")
    code = _flushed(arguments, sorted(filter(retried.get, retried))) if any(retried.values()) else 0
    return code if _count(found) >= len(set(arguments.ids)) else _NOT_ALL


def _drop(arguments: argparse.Namespace) -> int:
    if bool(arguments.ids) == (arguments.dead or arguments.all):
        arguments.parser.error("give the IDs of events, or --dead, or --all")
    with _outbox(arguments) as outbox:
        found = list(_events(outbox, arguments.destination, is_dead=True))
        if not arguments.dead:
            found += _events(outbox, arguments.destination, is_dead=False)
        named = _named(arguments, found)
        for _, spool, entries in named:
            for entry in entries:
                spool.remove(entry)
    print_note(f"{_count(named)} events are deleted")
    return 0 if _count(named) >= len(set(arguments.ids)) else _NOT_ALL


def _events(outbox: Outbox, named: Sequence[str], *, is_dead: bool) -> Iterator[_Events]:
    from spark_lineage.deliver.outgoing import SpoolError

    for destination, spool in outbox.spools().items():
        if not named or destination in named:
            try:
                yield destination, spool, spool.dead() if is_dead else spool.waiting()
            except SpoolError as error:
                # The others are shown.
                print_note(str(error))


def _named(arguments: argparse.Namespace, events: Iterable[_Events]) -> Sequence[_Events]:
    """Return the events that are asked for; report unknown ids."""
    wanted = set(arguments.ids)
    found = [
        (destination, spool, [entry for entry in entries if not wanted or entry.id in wanted])
        for destination, spool, entries in events
    ]
    if missing := sorted(wanted - {entry.id for _, _, entries in found for entry in entries}):
        print_note(f"no such event: {', '.join(missing)}")
    return found


def _count(events: Iterable[_Events]) -> int:
    return sum(len(entries) for _, _, entries in events)


def _listed(destination: str, spool: Spool, entries: Iterable[Entry], *, is_dead: bool) -> Iterator[_Listed]:
    pauses = spool.pauses
    for entry in entries:
        answer = spool.why(entry) if is_dead else pauses.why(entry.run_id) or pauses.why("")
        at, job = entry.put_at.timestamp(), spool.job_of(entry)
        yield _Listed(entry.id, destination, entry.event_type, job, entry.run_id, at, entry.size, is_dead, answer)


def _flushed(arguments: argparse.Namespace, destinations: Sequence[str]) -> int:
    from spark_lineage.deliver.outbox import flush

    with airflow_on_stderr():
        flushed = flush(arguments.dir, destinations, seconds=arguments.seconds)
    content = [{"destination": name, **asdict(delivered)} for name, delivered in flushed.items()]
    rows = [[str(value) for value in row.values()] for row in content]
    _show(arguments, {"destinations": content}, _FLUSHED_COLUMNS, rows, "Nothing waits.")
    return _NOT_ALL if any(delivered.waiting for delivered in flushed.values()) else 0


@contextmanager
def _outbox(arguments: argparse.Namespace) -> Iterator[Outbox]:
    """Return the outbox; a command that looks makes none.

    :raises InputError: for a directory or a destination that is not there
    """
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.deliver.connections import open_sender
    from spark_lineage.deliver.outbox import Outbox, default_directory

    with airflow_on_stderr():
        directory = arguments.dir or default_directory()
    if arguments.dir is not None and not directory.exists():
        raise InputError(f"there is no outbox in {arguments.dir}")
    outbox = Outbox(directory)
    for destination in set(arguments.destination) - outbox.spools().keys():
        # Raises for what is no connection either.
        with airflow_on_stderr():
            open_sender(destination).close()
    yield outbox


def _destination_row(one: Waiting) -> Sequence[str]:
    state = f"paused for {one.paused_seconds:.0f} s: {one.answer}" if one.paused_seconds else one.answer
    if one.paused_runs and not one.paused_seconds:
        state = f"{one.paused_runs} runs are paused: {one.answer}"
    oldest = _time(one.oldest_at) if one.waiting else ""
    return one.destination, str(one.waiting), oldest, str(one.dead), decimal(one.bytes), state


def _event_row(event: _Listed) -> Sequence[str]:
    return (
        *(event.id, event.destination, event.event_type, event.job, event.run_id),
        *(_time(event.stored_at), decimal(event.size), event.answer),
    )


def _show(
    arguments: argparse.Namespace,
    content: Mapping[str, Sequence[Any]],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    nothing: str,
) -> None:
    """Print the content as JSON, or its rows."""
    if arguments.json:
        print_json(content)
    elif not rows:
        print_note(nothing)
    else:
        print_table(columns, rows)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
