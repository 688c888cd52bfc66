"""The events of an outbox: added, taken out in order, refused, and forgotten when a backend has them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spark_lineage.deliver.outbox.breaker import Breaker
from spark_lineage.deliver.outbox.database import Database
from spark_lineage.deliver.outbox.kept_event import TERMINAL, Head, KeptEvent, OutboxError, Waiting, digest_of

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


class Store:
    """The events in one directory; from any thread, and after a fork too.

    Every method raises :class:`~spark_lineage.deliver.outbox.kept_event.OutboxError` when the file cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._database = Database(directory)

    def add(self, destination: str, head: Head, content: bytes, max_bytes: int) -> int:
        """Keep an event, on the disk when this returns; once, while the same content waits already.

        :return: how many RUNNING events and dead letters were thrown away for it
        :raises OutboxError: also when it does not fit
        """
        values = {
            "destination": destination,
            "run_id": head.run_id,
            "event_type": head.event_type,
            "event_time": head.event_time,
            "job": head.job,
            "stored_at": time.time(),
            "digest": digest_of(content),
            "size": len(content),
            "content": content,
        }

        def work(connection: sqlite3.Connection) -> int:
            same = connection.execute(
                "SELECT 1 FROM events WHERE destination = :destination AND digest = :digest AND is_dead = 0", values
            )
            if same.fetchone() is not None or _is_known(connection, destination, head):
                return 0
            dropped = _make_room(connection, len(content), max_bytes)
            connection.execute(
                f"INSERT INTO events ({', '.join(values)}) VALUES (:{', :'.join(values)})",  # noqa: S608
                values,
            )
            return dropped

        return self._database.write(work)

    def backlog(self, destination: str, up_to: int | None = None) -> tuple[int, int]:
        """Return how many events wait for a destination, and the last id; of those up to an id, if one is given."""
        ((count, last_id),) = self._database.rows(
            "SELECT count(*), coalesce(max(id), 0) FROM events"
            " WHERE destination = :name AND is_dead = 0 AND id <= coalesce(:up_to, id)",
            {"name": destination, "up_to": up_to},
        )
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
        query = "SELECT event_time FROM ended_runs WHERE destination = ? AND run_id = ?"
        rows = self._database.rows(query, (event.destination, event.head.run_id))
        return bool(rows) and not (event.head.event_type == "START" and _is_after(event.head.event_time, rows[0][0]))

    def taken(self, event: KeptEvent) -> None:
        """Forget an event that the backend has, but not that it was the end of its run; the breaker closes."""
        statements: list[tuple[str, Sequence[Any]]] = [(_REMOVAL, (event.id,)), (_CLOSING, (event.destination,))]
        if event.head.is_terminal and event.head.run_id:
            statements.append(_end(event.destination, event.head))
        elif event.head.event_type == "START":
            run = (event.destination, event.head.run_id)
            statements.append(("DELETE FROM ended_runs WHERE destination = ? AND run_id = ?", run))
        self._database.change(*statements)

    def passed(self, destination: str, head: Head) -> None:
        """Forget START and RUNNING of a run whose end a backend has, although it was never kept here."""
        opening = "DELETE FROM events WHERE destination = ? AND run_id = ? AND event_type IN ('START', 'RUNNING')"
        self._database.change((opening, (destination, head.run_id)), _end(destination, head))

    def discard(self, event: KeptEvent) -> None:
        """Forget an event that is not to be sent."""
        self._database.change((_REMOVAL, (event.id,)))

    def refuse(self, event: KeptEvent, answer: str) -> None:
        """Make an event a dead letter, with what the backend has answered."""
        refusal = "UPDATE events SET is_dead = 1, attempts = attempts + 1, answer = ? WHERE id = ?"
        self._database.change((refusal, (answer, event.id)), (_CLOSING, (event.destination,)))

    def put_off(self, event: KeptEvent | None, destination: str, breaker: Breaker, *, is_tried: bool) -> None:
        """Open the breaker of a destination; with an event, note what came of it.

        :param is_tried: whether the event itself may be the reason, so that it counts as a try
        """
        opening = ("INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?)", (destination, *astuple(breaker)))
        note = "UPDATE events SET attempts = attempts + ?, answer = ? WHERE id = ?"
        self._database.change(opening, (note, (int(is_tried), breaker.answer, event.id if event else None)))

    def breaker(self, destination: str) -> Breaker | None:
        """Return the open breaker of a destination."""
        return self._breakers().get(destination)

    def begin_drain(self) -> None:
        """Find out whether what will have been sent can be removed, and forget ends of long ago."""
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
        for name, breaker in self._breakers().items():
            here = found.get(name, Waiting(name))
            found[name] = replace(here, paused_seconds=breaker.remaining_seconds, answer=breaker.answer)
        return [found[name] for name in sorted(found)]

    def events(
        self, destinations: Iterable[str] = (), *, ids: Iterable[int] = (), is_dead: bool | None = None
    ) -> Sequence[KeptEvent]:
        """Return what is kept, oldest first: of these destinations, of these ids, waiting or refused; else all."""
        condition = "" if is_dead is None else f"WHERE is_dead = {int(is_dead)}"
        events = map(_kept, self._database.rows(f"SELECT {_COLUMNS} FROM events {condition} ORDER BY id"))  # noqa: S608
        named, wanted = set(destinations), set(ids)
        return [
            event
            for event in events
            if (not named or event.destination in named) and (not wanted or event.id in wanted)
        ]

    def open_runs(self) -> Mapping[str, str]:
        """Return the runs that began here, and whose end was not put here, each with its job (``namespace name``)."""
        return dict(self._database.rows("SELECT run_id, job FROM open_runs"))

    def has_ended(self, destination: str, run_id: str) -> bool:
        """Whether the end of a run was put here for a destination, within the last 7 days."""
        return bool(self._database.read(lambda connection: _ends_of(connection, destination, run_id)))

    def content(self, event_id: int) -> bytes | None:
        """Return the JSON of an event, None where it is not there any more."""
        rows = self._database.rows("SELECT content FROM events WHERE id = ?", (event_id,))
        return bytes(rows[0][0]) if rows else None

    def retry(self, ids: Iterable[int]) -> Sequence[KeptEvent]:
        """Have dead letters wait again, in their old place, and return them."""
        wanted = set(ids)
        dead = self.events(ids=wanted, is_dead=True) if wanted else ()

        def work(connection: sqlite3.Connection) -> None:
            for event in dead:
                try:
                    connection.execute(
                        "UPDATE events SET is_dead = 0, attempts = 0, answer = '' WHERE id = ? AND is_dead = 1",
                        (event.id,),
                    )
                except sqlite3.IntegrityError:
                    # The same content waits already.
                    connection.execute(_REMOVAL, (event.id,))

        self._database.write(work)
        return dead

    def drop(self, ids: Iterable[int]) -> int:
        """Throw events away, waiting or refused, and return how many there were."""
        rows = [(one,) for one in ids]
        return self._database.write(lambda connection: connection.executemany(_REMOVAL, rows).rowcount)

    def _breakers(self) -> Mapping[str, Breaker]:
        """Return the open breakers by their destinations; there are few."""
        return {destination: Breaker(*values) for destination, *values in self._database.rows("SELECT * FROM breakers")}


def _kept(row: Sequence[Any]) -> KeptEvent:
    """Return the event of a row of ``_COLUMNS``."""
    event_id, destination, run_id, event_type, event_time, job, stored_at, size, is_dead, attempts, answer = row
    head = Head(run_id, event_type, event_time, job)
    return KeptEvent(event_id, destination, head, stored_at, size, bool(is_dead), attempts, answer)


def _end(destination: str, head: Head) -> tuple[str, Sequence[Any]]:
    values = (destination, head.run_id, head.event_time, time.time(), head.event_type)
    return "INSERT OR REPLACE INTO ended_runs VALUES (?, ?, ?, ?, ?)", values


def _make_room(connection: sqlite3.Connection, size: int, max_bytes: int) -> int:
    """Throw away what a new event of ``size`` bytes needs, inside of the transaction that adds it; return how many.

    RUNNING events that wait go first: a later event of the run says the same. Then dead letters; of each the oldest.

    :raises OutboxError: when the event does not fit all the same; nothing is thrown away then
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
        "stays. See what waits with `spark-lineage outbox list`, send it with `outbox flush`, or raise outbox_max_bytes"
    )


def _is_known(connection: sqlite3.Connection, destination: str, head: Head) -> bool:
    """Note that a run begins or ends, and whether an event says of that nothing that was not kept before.

    A deferred task has two STARTs; the DAG run of a scheduler that was killed may be ended twice. Another end is news,
    and so are datasets.
    """
    key = (destination, head.run_id)
    if head.is_terminal:
        removed = connection.execute("DELETE FROM open_runs WHERE destination = ? AND run_id = ?", key).rowcount
        return not (removed or head.has_datasets) and head.event_type in _ends_of(connection, *key)
    if head.event_type == "START" and head.run_id:
        values = (*key, head.job, time.time())
        return connection.execute("INSERT OR IGNORE INTO open_runs VALUES (?, ?, ?, ?)", values).rowcount == 0
    return False


def _ends_of(connection: sqlite3.Connection, destination: str, run_id: str) -> set[str]:
    """Return the types of the ends of a run that were put for a destination."""
    query = (
        "SELECT event_type FROM ended_runs WHERE destination = :name AND run_id = :run"
        " UNION SELECT event_type FROM events WHERE destination = :name AND run_id = :run AND is_dead = 0"
    )
    rows = connection.execute(query, {"name": destination, "run": run_id})
    return {event_type for (event_type,) in rows} & TERMINAL


def _is_after(event_time: str, other: str) -> bool:
    """Compare two times as events have them; with one that cannot be read, it is not."""
    try:
        times = [datetime.fromisoformat(text) for text in (event_time, other)]
    except ValueError:
        return False
    one, two = (time_ if time_.tzinfo else time_.replace(tzinfo=UTC) for time_ in times)
    return one > two
