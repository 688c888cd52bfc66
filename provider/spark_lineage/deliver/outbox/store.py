"""The events of an outbox: added, taken out in order, refused, and forgotten when a backend has them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spark_lineage.deliver.outbox.breaker import Breaker
from spark_lineage.deliver.outbox.clock import Moment
from spark_lineage.deliver.outbox.database import Database
from spark_lineage.deliver.outbox.eviction import Dropped, make_room
from spark_lineage.deliver.outbox.kept_event import TERMINAL, Head, KeptEvent, digest_of

# How long an end that was delivered keeps later events of its run away.
_ENDED_SECONDS = 7 * 24 * 60 * 60
# Streams run for weeks.
_OPEN_SECONDS = 90 * 24 * 60 * 60
# An empty file larger than this is made small.
_SPARE_BYTES = 64 * 1024 * 1024

COLUMNS = (
    "events.id, destination, run_id, event_type, event_time, job, stored_at, size, is_dead, is_forced, "
    "coalesce(attempts, 0), coalesce(answer, ''), coalesce(blames, 0), coalesce(blamed_at, 0)"
)
JOINED = "events LEFT JOIN answers ON answers.event_id = events.id"


class Store:
    """The events in one directory; from any thread, and after a fork too.

    Every method raises :class:`~spark_lineage.deliver.outbox.errors.OutboxError` when the file cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.database = Database(directory)

    def add(self, destination: str, head: Head, content: bytes, max_bytes: int) -> Dropped:
        """Keep an event, on the disk when this returns; once, while the same content waits already.

        :return: what was thrown away for it
        :raises OutboxFullError: when it does not fit
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

        def work(connection: sqlite3.Connection) -> Dropped:
            same = connection.execute(
                "SELECT 1 FROM events WHERE destination = :destination AND digest = :digest AND is_dead = 0", values
            )
            if same.fetchone() is not None or _is_known(connection, destination, head):
                return Dropped()
            dropped = make_room(connection, len(content), max_bytes)
            connection.execute(
                f"INSERT INTO events ({', '.join(values)}) VALUES (:{', :'.join(values)})",  # noqa: S608
                values,
            )
            return dropped

        return self.database.add(work)

    def backlog(self, destination: str, up_to: int | None = None) -> tuple[int, int]:
        """Return how many events wait for a destination, and the last id; of those up to an id, if one is given."""
        limit = "" if up_to is None else "AND id <= :up_to"
        query = f"SELECT count(*), coalesce(max(id), 0) FROM events WHERE destination = :name AND is_dead = 0 {limit}"  # noqa: S608
        values = {"name": destination, "up_to": up_to}
        count, last_id = self.database.read(lambda connection: connection.execute(query, values).fetchone())
        return count, last_id

    def next_waiting(self, destination: str, *, tried_less_than: int | None = None) -> tuple[KeptEvent, bytes] | None:
        """Return the event that is to be sent next, with its content.

        :param tried_less_than: passes over events that were tried as often, and over all others of their runs
        """
        others = """AND coalesce(attempts, 0) < :tries AND run_id NOT IN (
            SELECT run_id FROM events JOIN answers ON event_id = id
            WHERE destination = :name AND is_dead = 0 AND attempts >= :tries)"""
        query = (
            f"SELECT {COLUMNS}, content FROM {JOINED} WHERE destination = :name AND is_dead = 0"  # noqa: S608
            f" {'' if tried_less_than is None else others} ORDER BY events.id LIMIT 1"
        )
        row = self.database.read(
            lambda connection: connection.execute(query, {"name": destination, "tries": tried_less_than}).fetchone()
        )
        return None if row is None else (kept(row), row[-1])

    def is_late(self, event: KeptEvent) -> bool:
        """Whether a backend has its run as ended, and would show it as running again."""
        if not event.head.reopens or event.is_forced:
            return False
        return self.database.read(lambda connection: has_ended(connection, event))

    def taken(self, event: KeptEvent) -> None:
        """Forget an event that the backend has, but not that it was the end of its run; the breaker closes."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM events WHERE id = ?", (event.id,))
            connection.execute("DELETE FROM breakers WHERE destination = ?", (event.destination,))
            if event.head.is_terminal and event.head.run_id:
                connection.execute(
                    "INSERT OR REPLACE INTO ended_runs VALUES (?, ?, ?, ?, ?)",
                    _end(event.destination, event.head),
                )
            elif event.head.event_type == "START":
                connection.execute(
                    "DELETE FROM ended_runs WHERE destination = ? AND run_id = ?",
                    (event.destination, event.head.run_id),
                )

        self.database.write(work, is_durable=False)

    def passed(self, destination: str, head: Head) -> None:
        """Forget START and RUNNING of a run whose end a backend has, although it was never kept here."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM events WHERE destination = ? AND run_id = ? AND event_type IN ('START', 'RUNNING')",
                (destination, head.run_id),
            )
            connection.execute("INSERT OR REPLACE INTO ended_runs VALUES (?, ?, ?, ?, ?)", _end(destination, head))

        self.database.write(work, is_durable=False)

    def discard(self, event: KeptEvent) -> None:
        """Forget an event that is not to be sent."""
        self.database.write(
            lambda connection: connection.execute("DELETE FROM events WHERE id = ?", (event.id,)), is_durable=False
        )

    def refuse(self, event: KeptEvent, answer: str) -> None:
        """Make an event a dead letter, with what the backend has answered."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE events SET is_dead = 1 WHERE id = ?", (event.id,))
            _note(connection, event, answer, 1)
            connection.execute("DELETE FROM breakers WHERE destination = ?", (event.destination,))

        self.database.write(work, is_durable=False)

    def put_off(self, event: KeptEvent | None, destination: str, breaker: Breaker, *, is_tried: bool) -> None:
        """Open the breaker of a destination; with an event, note what came of it.

        :param is_tried: whether the event itself may be the reason, so that it counts as a try
        """

        def work(connection: sqlite3.Connection) -> None:
            if event is not None:
                _note(connection, event, breaker.answer, int(is_tried))
            moment = breaker.opened_at
            connection.execute(
                "INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    destination,
                    breaker.failures,
                    moment.boot_id,
                    moment.since_boot_seconds,
                    moment.wall_seconds,
                    breaker.wait_seconds,
                    breaker.answer,
                ),
            )

        self.database.write(work, is_durable=False)

    def blame(self, event: KeptEvent, answer: str) -> None:
        """Note that an event was not taken while others were."""

        def work(connection: sqlite3.Connection) -> None:
            _note(connection, event, answer, 1)
            connection.execute(
                "UPDATE answers SET blames = blames + 1, blamed_at = ? WHERE event_id = ?", (time.time(), event.id)
            )

        self.database.write(work, is_durable=False)

    def breaker(self, destination: str) -> Breaker | None:
        """Return the open breaker of a destination."""
        return self.database.read(lambda connection: breakers(connection).get(destination))

    def begin_drain(self) -> None:
        """Find out whether what will have been sent can be removed, and forget ends of long ago."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE totals SET drained_at = ?", (time.time(),))
            connection.execute("DELETE FROM ended_runs WHERE ended_at < ?", (time.time() - _ENDED_SECONDS,))
            connection.execute("DELETE FROM open_runs WHERE began_at < ?", (time.time() - _OPEN_SECONDS,))

        self.database.write(work, is_durable=False)

    def tidy(self) -> None:
        """Make a file small that is large and holds little."""

        def spare(connection: sqlite3.Connection) -> int:
            (free,), (page,) = (
                connection.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_size")
            )
            (used,) = connection.execute("SELECT bytes FROM totals").fetchone()
            return int(free * page) if used * 8 < free * page else 0

        if self.database.read(spare) > _SPARE_BYTES or not self.database.has_reserve():
            self.database.shrink()


def _end(destination: str, head: Head) -> tuple[str, str, str, float, str]:
    return destination, head.run_id, head.event_time, time.time(), head.event_type


def _is_known(connection: sqlite3.Connection, destination: str, head: Head) -> bool:
    """Note that a run begins or ends, and whether an event says of that nothing that was not kept before.

    A deferred task has two STARTs; the DAG run of a scheduler that was killed may be ended twice. Another end is news,
    and so are datasets.
    """
    key = (destination, head.run_id)
    if head.is_terminal:
        removed = connection.execute("DELETE FROM open_runs WHERE destination = ? AND run_id = ?", key).rowcount
        return not (removed or head.has_datasets) and head.event_type in ends_of(connection, *key)
    if head.event_type == "START" and head.run_id:
        values = (*key, head.job, time.time())
        return connection.execute("INSERT OR IGNORE INTO open_runs VALUES (?, ?, ?, ?)", values).rowcount == 0
    return False


def ends_of(connection: sqlite3.Connection, destination: str, run_id: str) -> set[str]:
    """Return the types of the ends of a run that were put for a destination."""
    query = (
        "SELECT event_type FROM ended_runs WHERE destination = :name AND run_id = :run"
        " UNION SELECT event_type FROM events WHERE destination = :name AND run_id = :run AND is_dead = 0"
    )
    rows = connection.execute(query, {"name": destination, "run": run_id}).fetchall()
    return {event_type for (event_type,) in rows} & TERMINAL


def kept(row: Sequence[Any]) -> KeptEvent:
    """Return the event of a row of ``COLUMNS``."""
    event_id, destination, run_id, event_type, event_time, job, stored_at, size, is_dead, is_forced, *answer = row
    head = Head(run_id, event_type, event_time, job)
    return KeptEvent(event_id, destination, head, stored_at, size, bool(is_dead), bool(is_forced), *answer[:4])


def _note(connection: sqlite3.Connection, event: KeptEvent, answer: str, tries: int) -> None:
    connection.execute(
        "INSERT INTO answers (event_id, attempts, answer) SELECT id, :tries, :answer FROM events WHERE id = :id"
        " ON CONFLICT (event_id) DO UPDATE SET attempts = attempts + :tries, answer = :answer",
        {"id": event.id, "tries": tries, "answer": answer},
    )


def breakers(connection: sqlite3.Connection) -> Mapping[str, Breaker]:
    """Return the open breakers by their destinations; there are few."""
    query = (
        "SELECT destination, failures, boot_id, since_boot_seconds, wall_seconds, wait_seconds, answer FROM breakers"
    )
    return {
        destination: Breaker(failures, Moment(boot_id, since_boot, wall), wait_seconds, answer)
        for destination, failures, boot_id, since_boot, wall, wait_seconds, answer in connection.execute(query)
    }


def has_ended(connection: sqlite3.Connection, event: KeptEvent) -> bool:
    """Whether the end of an event's run was delivered to its destination.

    A START that is younger than that end begins the run anew: a DAG run that is tested twice has the same run ids.
    """
    query = "SELECT event_time FROM ended_runs WHERE destination = ? AND run_id = ?"
    row = connection.execute(query, (event.destination, event.head.run_id)).fetchone()
    return row is not None and not (event.head.event_type == "START" and _is_after(event.head.event_time, row[0]))


def _is_after(event_time: str, other: str) -> bool:
    """Compare two times as events have them; with one that cannot be read, it is not."""
    try:
        one, two = (datetime.fromisoformat(text) for text in (event_time, other))
    except ValueError:
        return False
    return _aware(one) > _aware(two)


def _aware(time_: datetime) -> datetime:
    return time_ if time_.tzinfo else time_.replace(tzinfo=UTC)
