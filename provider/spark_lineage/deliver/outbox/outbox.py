"""The outbox in one directory: put an event, deliver it, list what waits, retry or drop refused events."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver.outbox.database import FILE, Database
from spark_lineage.deliver.outbox.delivery import Drain
from spark_lineage.deliver.outbox.kept_event import (
    TERMINAL,
    Breaker,
    Head,
    KeptEvent,
    OutboxError,
    Waiting,
    digest_of,
    head_of,
)
from spark_lineage.deliver.stored_event import event_time
from spark_lineage.launch.bounded_run import OUTBOX_FILES, BoundedRun, Deadline
from spark_lineage.settings.places import option, outbox_directory

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

__all__ = ["Delivered", "Outbox", "OutboxError"]

_log = logging.getLogger(__name__)

DEFAULT_BYTES = 500_000_000
FLUSH_SECONDS = 300.0
# Of the time of a delivery, for noting that a backend gave no answer.
_RESERVE = 0.04
_MAX_RESERVE_SECONDS = 0.2
# How long an end that was delivered keeps later events of its run away.
_ENDED_SECONDS = 7 * 24 * 60 * 60
# Streams run for weeks.
_OPEN_SECONDS = 90 * 24 * 60 * 60
# The number as such: of a file that is broken it may come as anything.
_COLUMNS = (
    "id, destination, run_id, event_type, event_time, job, stored_at, size, is_dead, coalesce(attempts + 0, 0), answer"
)
_REMOVAL = "DELETE FROM events WHERE id = ?"
_CLOSING = "DELETE FROM breakers WHERE destination = ?"
_OF_RUN = "WHERE destination = ? AND run_id = ?"
_ENDS = f"""SELECT event_type FROM ended_runs {_OF_RUN}
    UNION SELECT event_type FROM events {_OF_RUN} AND is_dead = 0 AND event_type IN {tuple(TERMINAL)}"""  # noqa: S608


@dataclass(frozen=True)
class Delivered:
    """The result of one delivery: events that were taken, those that still wait, and those that became dead letters.

    ``discarded``: START and RUNNING of runs whose end had been delivered.
    """

    sent: int = 0
    waiting: int = 0
    refused: int = 0
    discarded: int = 0


class Outbox:
    """Events on their way, in one directory, which any number of processes may share; from any thread.

    Nothing is opened or made before it is needed, and an outbox may be used on both sides of a fork. Every method but
    ``deliver`` raises ``OutboxError`` when the file cannot be used.

    :param directory: made where it is missing, for its owner alone (0700)
    :param max_bytes: how many bytes of events it holds at most; then RUNNING events and dead letters make room
    """

    def __init__(self, directory: Path, *, max_bytes: int = DEFAULT_BYTES) -> None:
        self.directory = directory
        self._database = Database(directory)
        self._max_bytes = max_bytes

    @OUTBOX_FILES.bounded
    def put(self, destination: str, content: bytes) -> None:
        """Keep an event; it is on disk, fsynced, when this returns.

        Content that already waits for the destination is kept once, and so is the START of a run until its end is put.

        :param destination: the id of a connection, or ``conn_id/member``
        :param content: the JSON of one event of OpenLineage, without secrets
        :raises OutboxError: also when it does not fit
        :raises TimeoutError: when its disk hangs; it may still be kept later
        """
        head = head_of(content)
        names = {name: getattr(head, name) for name in ("run_id", "event_type", "event_time", "job")}
        values = {"destination": destination, **names, "stored_at": time.time(), "digest": digest_of(content)}
        values |= {"size": len(content), "content": content}

        def work(connection: sqlite3.Connection) -> int:
            same = "SELECT 1 FROM events WHERE destination = ? AND digest = ? AND is_dead = 0"
            if connection.execute(same, (destination, values["digest"])).fetchone() is not None:
                return 0
            if _is_known(connection, destination, head):
                return 0
            dropped = _make_room(connection, len(content), self._max_bytes)
            added = f"INSERT INTO events ({', '.join(values)}) VALUES (:{', :'.join(values)})"  # noqa: S608
            connection.execute(added, values)
            return dropped

        if dropped := self._database.write(work):
            text = "The outbox in %s is full: %d RUNNING events and dead letters were dropped for a new event."
            _log.warning(text, self.directory, dropped)

    @OUTBOX_FILES.bounded
    def sent_directly(self, destination: str, content: bytes) -> None:
        """Note that a backend has an event that could not be kept: waiting events of an ended run are not sent."""
        head = head_of(content)
        if head.is_terminal and head.run_id:
            opening = f"DELETE FROM events {_OF_RUN} AND event_type IN ('START', 'RUNNING')"  # noqa: S608
            with suppress(OutboxError, TimeoutError):
                self._database.change((opening, (destination, head.run_id)), _end(destination, head))

    def deliver(
        self,
        destinations: Iterable[str],
        open_transport: Callable[[str], Transport],
        seconds: float,
        *,
        is_asked_for: bool = False,
    ) -> Delivered:
        """Send what waits for some destinations, in order, until nothing waits or the time is over.

        It returns then, whatever a backend does; what is in flight is sent again by the next delivery, unless this
        process lives to see the answer. Nothing is raised.

        :param open_transport: its transports raise unless the backend has taken an event; called on other threads
        :param is_asked_for: the backend was mended: send although its breaker is open
        """
        deadline = Deadline(seconds)
        sending = deadline.within(seconds, leaving=min(_MAX_RESERVE_SECONDS, seconds * _RESERVE))
        is_over = threading.Event()
        if seconds <= 0:
            is_over.set()
        drains = [Drain(self, name, open_transport, is_over, is_asked_for) for name in dict.fromkeys(destinations)]
        for run in [BoundedRun(drain.run, f"spark-lineage-outbox {drain.destination}") for drain in drains]:
            run.wait(sending)
        is_over.set()
        late = [partial(drain.give_up, seconds) for drain in drains if drain.in_flight]
        for run in [BoundedRun(each, "spark-lineage-outbox late") for each in late]:
            run.wait(deadline)
        counts = zip(*((drain.sent, drain.waiting, drain.refused, drain.discarded) for drain in drains), strict=True)
        return Delivered(*map(sum, counts))

    @OUTBOX_FILES.bounded
    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        self._database.close()

    def backlog(self, destination: str, up_to: int | None = None) -> tuple[int, int]:
        """Return how many events wait for a destination, and the last id; of those up to an id, if one is given."""
        query = "SELECT count(*), coalesce(max(id), 0) FROM events WHERE destination = ? AND is_dead = 0"
        ((count, last_id),) = self._database.rows(f"{query} AND id <= coalesce(?, id)", (destination, up_to))
        return count, last_id

    def next_waiting(
        self, destination: str, *, tried_less_than: int | None = None
    ) -> tuple[KeptEvent, bytes | None] | None:
        """Return the event that is to be sent next, with its content, None where a byte of that is another now.

        :param tried_less_than: passes over runs of which an event was tried as often
        """
        others = """AND run_id NOT IN (
            SELECT run_id FROM events
            WHERE destination = :name AND is_dead = 0 AND attempts > 0 AND attempts >= :tries)"""
        rows = self._database.rows(
            f"SELECT {_COLUMNS}, digest, CAST(content AS BLOB) FROM events WHERE destination = :name AND is_dead = 0"  # noqa: S608
            f" {'' if tried_less_than is None else others} ORDER BY id LIMIT 1",
            {"name": destination, "tries": tried_less_than},
        )
        if not rows:
            return None
        *event, digest, content = rows[0]
        return _kept(event), content if digest_of(content) == digest else None

    def is_late(self, event: KeptEvent) -> bool:
        """Whether a backend has its run as ended, and would show it as running again.

        A START that is younger than that end begins the run anew: a DAG run that is tested twice has the same run ids.
        """
        if event.head.event_type not in {"START", "RUNNING"}:
            return False
        query = f"SELECT event_time FROM ended_runs {_OF_RUN}"  # noqa: S608
        rows = self._database.rows(query, (event.destination, event.head.run_id))
        return bool(rows) and not (event.head.event_type == "START" and _is_after(event.head.event_time, rows[0][0]))

    def taken(self, event: KeptEvent) -> None:
        """Forget an event that the backend has, but not that it was the end of its run; the breaker closes."""
        statements: list[tuple[str, Sequence[Any]]] = [(_REMOVAL, (event.id,)), (_CLOSING, (event.destination,))]
        if event.head.is_terminal and event.head.run_id:
            statements.append(_end(event.destination, event.head))
        elif event.head.event_type == "START":
            statements.append((f"DELETE FROM ended_runs {_OF_RUN}", (event.destination, event.head.run_id)))  # noqa: S608
        self._database.change(*statements)

    def refuse(self, event: KeptEvent, answer: str) -> None:
        """Make an event a dead letter, with what the backend has answered."""
        refusal = "UPDATE events SET is_dead = 1, attempts = attempts + 1, answer = ? WHERE id = ?"
        self._database.change((refusal, (answer, event.id)), (_CLOSING, (event.destination,)))

    def put_off(self, event: KeptEvent | None, destination: str, breaker: Breaker, *, is_tried: bool) -> None:
        """Open the breaker of a destination; with an event, note the answer to it.

        :param is_tried: whether the event itself may be the reason, so that it counts as a try
        """
        opening = ("INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?)", (destination, *astuple(breaker)))
        note = "UPDATE events SET attempts = attempts + ?, answer = ? WHERE id = ?"
        self._database.change(opening, (note, (int(is_tried), breaker.answer, event.id if event else None)))

    def breakers(self) -> Mapping[str, Breaker]:
        """Return the open breakers by their destinations; there are few."""
        return {destination: Breaker(*values) for destination, *values in self._database.rows("SELECT * FROM breakers")}

    def begin_drain(self) -> None:
        """Check that sent events can be removed, and forget old ends."""
        now = time.time()
        self._database.change(
            ("UPDATE totals SET drained_at = ?", (now,)),
            ("DELETE FROM ended_runs WHERE ended_at < ?", (now - _ENDED_SECONDS,)),
            ("DELETE FROM open_runs WHERE began_at < ?", (now - _OPEN_SECONDS,)),
        )

    def destinations(self) -> Sequence[Waiting]:
        """Return for each destination how much waits, how much was refused, and whether its breaker is open."""
        rows = self._database.rows(
            "SELECT destination, sum(1 - is_dead), sum(is_dead), sum(size),"
            " coalesce(min(CASE WHEN is_dead THEN NULL ELSE stored_at END), 0) FROM events GROUP BY destination"
        )
        found = {row[0]: Waiting(*row) for row in rows}
        for name, breaker in self.breakers().items():
            here = found.get(name, Waiting(name))
            found[name] = replace(here, paused_seconds=breaker.remaining_seconds, answer=breaker.answer)
        return [found[name] for name in sorted(found)]

    def events(
        self, destinations: Iterable[str] = (), *, ids: Iterable[int] = (), is_dead: bool | None = None
    ) -> Sequence[KeptEvent]:
        """Return what is kept, oldest first: of these destinations, of these ids, waiting or refused; else all."""
        events = map(_kept, self._database.rows(f"SELECT {_COLUMNS} FROM events ORDER BY id"))  # noqa: S608
        named, wanted = set(destinations), set(ids)
        return [
            event
            for event in events
            if (not named or event.destination in named)
            and (not wanted or event.id in wanted)
            and is_dead in (None, event.is_dead)
        ]

    def open_runs(self) -> Mapping[str, str]:
        """Return the runs that began here, and whose end was not put here, each with its job (``namespace name``)."""
        return dict(self._database.rows("SELECT run_id, job FROM open_runs"))

    def has_ended(self, destination: str, run_id: str) -> bool:
        """Whether the end of a run was put here for a destination, within the last 7 days."""
        return bool(self._database.rows(_ENDS, (destination, run_id) * 2))

    def content(self, event_id: int) -> bytes | None:
        """Return the JSON of an event, None where it is not there any more."""
        rows = self._database.rows("SELECT content FROM events WHERE id = ?", (event_id,))
        return bytes(rows[0][0]) if rows else None

    def retry(self, ids: Iterable[int]) -> Sequence[KeptEvent]:
        """Have dead letters wait again, in their old place, and return them."""
        wanted = set(ids)
        dead = [event for event in self.events(is_dead=True) if event.id in wanted]
        rows = [(event.id,) for event in dead]

        def work(connection: sqlite3.Connection) -> None:
            revival = "UPDATE OR IGNORE events SET is_dead = 0, attempts = 0, answer = '' WHERE id = ? AND is_dead = 1"
            connection.executemany(revival, rows)
            # What is dead still is the same content as an event that waits already.
            connection.executemany(f"{_REMOVAL} AND is_dead = 1", rows)

        self._database.write(work)
        return dead

    def drop(self, ids: Iterable[int]) -> int:
        """Delete events, waiting or refused, and return how many there were."""
        rows = [(one,) for one in ids]
        return self._database.write(lambda connection: connection.executemany(_REMOVAL, rows).rowcount)


def default_directory() -> Path:
    """Return the directory of the outbox that Airflow's configuration names."""
    return outbox_directory(option("outbox_dir") or "")


def flush(
    directory: Path | None = None, destinations: Iterable[str] = (), *, seconds: float = FLUSH_SECONDS
) -> Mapping[str, Delivered]:
    """Send what waits, also to backends whose breaker is open, by the connections that the events name.

    :param directory: of an outbox; the one that Airflow's configuration names where it is None
    :param destinations: only these; all where there are none
    :param seconds: for all together
    :return: the result by destination; of those only for which something waited
    :raises OutboxError: when an outbox cannot be read
    """
    from spark_lineage.deliver.transports.opening import open_transport

    deadline = Deadline(seconds)
    only = frozenset(destinations)
    directory = directory or default_directory()
    if not (directory / FILE).exists():
        return {}
    with closing(Outbox(directory)) as outbox:
        return {
            one.destination: outbox.deliver([one.destination], open_transport, deadline.seconds_left, is_asked_for=True)
            for one in outbox.destinations()
            if one.waiting and (not only or one.destination in only)
        }


def _kept(row: Sequence[Any]) -> KeptEvent:
    event_id, destination, *head, stored_at, size, is_dead, attempts, answer = row
    return KeptEvent(event_id, destination, Head(*head), stored_at, size, bool(is_dead), attempts, answer)


def _end(destination: str, head: Head) -> tuple[str, Sequence[Any]]:
    values = (destination, head.run_id, head.event_time, time.time(), head.event_type)
    return "INSERT OR REPLACE INTO ended_runs VALUES (?, ?, ?, ?, ?)", values


def _make_room(connection: sqlite3.Connection, size: int, max_bytes: int) -> int:
    """Drop events to make room for ``size`` bytes, in the transaction of the new event; return how many.

    RUNNING events that wait go first: a later event of the run says the same. Then dead letters; of each the oldest.

    :raises OutboxError: when the event still does not fit; nothing is dropped then
    """
    # Of a file that is broken, there may be none: then the trigger that adds to it says so.
    (used,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM totals").fetchone()
    missing = used + size - max_bytes
    if missing <= 0:
        return 0
    dropped = []
    for event_id, freed in connection.execute(
        "SELECT id, size FROM events WHERE (is_dead = 0 AND event_type = 'RUNNING') OR is_dead = 1 ORDER BY is_dead, id"
    ):
        dropped.append((event_id,))
        missing -= freed
        if missing <= 0:
            connection.executemany(_REMOVAL, dropped)
            return len(dropped)
    raise OutboxError(
        f"the outbox is full: an event of {size} bytes does not fit beside {used} of {max_bytes} bytes; what is there "
        "stays. See what waits with `spark-lineage outbox list`, send it with `outbox flush`"
    )


def _is_known(connection: sqlite3.Connection, destination: str, head: Head) -> bool:
    """Note that a run begins or ends, and whether the event adds nothing to what was kept before.

    A deferred task has two STARTs; the DAG run of a scheduler that was killed may be ended twice. Another end is news,
    and so are datasets.
    """
    key = (destination, head.run_id)
    if head.is_terminal:
        removed = connection.execute(f"DELETE FROM open_runs {_OF_RUN}", key).rowcount  # noqa: S608
        return not (removed or head.has_datasets) and (head.event_type,) in connection.execute(_ENDS, key * 2)
    if head.event_type == "START" and head.run_id:
        values = (*key, head.job, time.time())
        return connection.execute("INSERT OR IGNORE INTO open_runs VALUES (?, ?, ?, ?)", values).rowcount == 0
    return False


def _is_after(one: str, other: str) -> bool:
    try:
        return event_time(one) > event_time(other)
    except ValueError:
        # One of them cannot be read.
        return False
