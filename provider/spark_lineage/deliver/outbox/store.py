"""The events of an outbox: added, taken out in order, refused, and forgotten when a backend has them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spark_lineage.deliver.outbox.breaker import Breaker
from spark_lineage.deliver.outbox.database import Database
from spark_lineage.deliver.outbox.kept_event import TERMINAL, Head, KeptEvent, OutboxFullError, digest_of

# How long an end that was delivered keeps later events of its run away.
_ENDED_SECONDS = 7 * 24 * 60 * 60
# Streams run for weeks.
_OPEN_SECONDS = 90 * 24 * 60 * 60

# The numbers as such: of a file that is broken they may come as anything.
COLUMNS = (
    "id, destination, run_id, event_type, event_time, job, stored_at, size, is_dead, is_forced,"
    " coalesce(attempts + 0, 0), answer, coalesce(blames + 0, 0), coalesce(blamed_at + 0, 0)"
)


class Store:
    """The events in one directory; from any thread, and after a fork too.

    Every method raises :class:`~spark_lineage.deliver.outbox.kept_event.OutboxError` when the file cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.database = Database(directory)

    def add(self, destination: str, head: Head, content: bytes, max_bytes: int) -> tuple[int, int]:
        """Keep an event, on the disk when this returns; once, while the same content waits already.

        :return: how many RUNNING events and how many dead letters were thrown away for it
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

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            same = connection.execute(
                "SELECT 1 FROM events WHERE destination = :destination AND digest = :digest AND is_dead = 0", values
            )
            if same.fetchone() is not None or _is_known(connection, destination, head):
                return 0, 0
            dropped = _make_room(connection, len(content), max_bytes)
            connection.execute(
                f"INSERT INTO events ({', '.join(values)}) VALUES (:{', :'.join(values)})",  # noqa: S608
                values,
            )
            return dropped

        return self.database.write(work, is_adding=True)

    def backlog(self, destination: str, up_to: int | None = None) -> tuple[int, int]:
        """Return how many events wait for a destination, and the last id; of those up to an id, if one is given."""
        ((count, last_id),) = self.database.rows(
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
        rows = self.database.rows(
            f"SELECT {COLUMNS}, digest, CAST(content AS BLOB) FROM events WHERE destination = :name AND is_dead = 0"  # noqa: S608
            f" {'' if tried_less_than is None else others} ORDER BY id LIMIT 1",
            {"name": destination, "tries": tried_less_than},
        )
        if not rows:
            return None
        *_, digest, content = rows[0]
        return kept(rows[0]), content if digest_of(content) == digest else None

    def is_late(self, event: KeptEvent) -> bool:
        """Whether a backend has its run as ended, and would show it as running again."""
        if not event.head.reopens or event.is_forced:
            return False
        return self.database.read(lambda connection: has_ended(connection, event))

    def taken(self, event: KeptEvent) -> None:
        """Forget an event that the backend has, but not that it was the end of its run; the breaker closes."""
        statements = [_removal(event), _closing(event.destination)]
        if event.head.is_terminal and event.head.run_id:
            statements.append(_end(event.destination, event.head))
        elif event.head.event_type == "START":
            run = (event.destination, event.head.run_id)
            statements.append(("DELETE FROM ended_runs WHERE destination = ? AND run_id = ?", run))
        self.database.change(*statements)

    def passed(self, destination: str, head: Head) -> None:
        """Forget START and RUNNING of a run whose end a backend has, although it was never kept here."""
        opening = "DELETE FROM events WHERE destination = ? AND run_id = ? AND event_type IN ('START', 'RUNNING')"
        self.database.change((opening, (destination, head.run_id)), _end(destination, head))

    def discard(self, event: KeptEvent) -> None:
        """Forget an event that is not to be sent."""
        self.database.change(_removal(event))

    def refuse(self, event: KeptEvent, answer: str) -> None:
        """Make an event a dead letter, with what the backend has answered."""
        refusal = "UPDATE events SET is_dead = 1, attempts = attempts + 1, answer = ? WHERE id = ?"
        self.database.change((refusal, (answer, event.id)), _closing(event.destination))

    def put_off(self, event: KeptEvent | None, destination: str, breaker: Breaker, *, is_tried: bool) -> None:
        """Open the breaker of a destination; with an event, note what came of it.

        :param is_tried: whether the event itself may be the reason, so that it counts as a try
        """
        opening = ("INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?, ?, ?)", (destination, *astuple(breaker)))
        note = "UPDATE events SET attempts = attempts + ?, answer = ? WHERE id = ?"
        self.database.change(opening, (note, (int(is_tried), breaker.answer, event.id if event else None)))

    def blame(self, event: KeptEvent, answer: str) -> None:
        """Note that an event was not taken while others were."""
        note = (
            "UPDATE events SET attempts = attempts + 1, answer = ?, blames = blames + 1, blamed_at = ? WHERE id = ?",
            (answer, time.time(), event.id),
        )
        self.database.change(note)

    def breaker(self, destination: str) -> Breaker | None:
        """Return the open breaker of a destination."""
        return self.database.read(breakers).get(destination)

    def begin_drain(self) -> None:
        """Find out whether what will have been sent can be removed, and forget ends of long ago."""
        now = time.time()
        self.database.change(
            ("UPDATE totals SET drained_at = ?", (now,)),
            ("DELETE FROM ended_runs WHERE ended_at < ?", (now - _ENDED_SECONDS,)),
            ("DELETE FROM open_runs WHERE began_at < ?", (now - _OPEN_SECONDS,)),
        )


def _removal(event: KeptEvent) -> tuple[str, Sequence[Any]]:
    return "DELETE FROM events WHERE id = ?", (event.id,)


def _closing(destination: str) -> tuple[str, Sequence[Any]]:
    return "DELETE FROM breakers WHERE destination = ?", (destination,)


def _end(destination: str, head: Head) -> tuple[str, Sequence[Any]]:
    values = (destination, head.run_id, head.event_time, time.time(), head.event_type)
    return "INSERT OR REPLACE INTO ended_runs VALUES (?, ?, ?, ?, ?)", values


def _make_room(connection: sqlite3.Connection, size: int, max_bytes: int) -> tuple[int, int]:
    """Throw away as much as a new event of ``size`` bytes needs, inside of the transaction that adds it.

    RUNNING events that wait go first, the oldest first: a later event of the run says the same. Then dead letters, the
    oldest first. Everything else stays.

    :raises OutboxFullError: when the event does not fit all the same; nothing may be thrown away then
    """
    # Of a file that is broken, there may be none: then the trigger that adds to it says so.
    (used,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM totals").fetchone()
    missing = used + size - max_bytes
    if missing <= 0:
        return 0, 0
    counts = []
    for condition in ("is_dead = 0 AND event_type = 'RUNNING'", "is_dead = 1"):
        ids = []
        for event_id, freed in connection.execute(f"SELECT id, size FROM events WHERE {condition} ORDER BY id"):  # noqa: S608
            if missing <= 0:
                break
            ids.append((event_id,))
            missing -= freed
        connection.executemany("DELETE FROM events WHERE id = ?", ids)
        counts.append(len(ids))
    if missing > 0:
        raise OutboxFullError(
            f"the outbox is full: an event of {size} bytes does not fit beside {used} of {max_bytes} bytes; what it "
            "holds is kept. See what waits with `spark-lineage outbox list`, send it with `outbox flush`, or raise "
            "outbox_max_bytes"
        )
    return counts[0], counts[1]


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
    rows = connection.execute(query, {"name": destination, "run": run_id})
    return {event_type for (event_type,) in rows} & TERMINAL


def kept(row: Sequence[Any]) -> KeptEvent:
    """Return the event of a row of ``COLUMNS``."""
    event_id, destination, run_id, event_type, event_time, job, stored_at, size, is_dead, is_forced, *answer = row
    head = Head(run_id, event_type, event_time, job)
    return KeptEvent(event_id, destination, head, stored_at, size, bool(is_dead), bool(is_forced), *answer[:4])


def breakers(connection: sqlite3.Connection) -> Mapping[str, Breaker]:
    """Return the open breakers by their destinations; there are few."""
    return {destination: Breaker(*values) for destination, *values in connection.execute("SELECT * FROM breakers")}


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
        times = [datetime.fromisoformat(text) for text in (event_time, other)]
    except ValueError:
        return False
    one, two = (time_ if time_.tzinfo else time_.replace(tzinfo=UTC) for time_ in times)
    return one > two
