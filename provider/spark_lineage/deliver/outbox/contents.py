"""What an outbox holds, for people: seen, sent again, thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spark_lineage.deliver.outbox.database import Database
from spark_lineage.deliver.outbox.kept_event import KeptEvent
from spark_lineage.deliver.outbox.store import COLUMNS, JOINED, breakers, ends_of, has_ended, kept


@dataclass(frozen=True)
class Waiting:
    """What is there for one destination.

    ``oldest_at`` is when the oldest that waits was put, in seconds since the epoch; 0 where nothing waits. While its
    breaker is open, nothing is sent for ``paused_seconds``, because of ``answer``.
    """

    destination: str
    waiting: int = 0
    dead: int = 0
    bytes: int = 0
    oldest_at: float = 0.0
    paused_seconds: float = 0.0
    answer: str = ""


@dataclass(frozen=True)
class Retried:
    """The dead letters that wait again, and those that were left because the end of their run has been delivered."""

    waiting: Sequence[KeptEvent]
    late: Sequence[KeptEvent]


class Contents:
    """The events of one file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def destinations(self) -> Sequence[Waiting]:
        """As :meth:`Outbox.destinations <spark_lineage.deliver.outbox.outbox.Outbox.destinations>`."""
        query = (
            "SELECT destination, sum(1 - is_dead), sum(is_dead), sum(size),"
            " coalesce(min(CASE WHEN is_dead THEN NULL ELSE stored_at END), 0) FROM events GROUP BY destination"
        )
        rows, open_breakers = self._database.read(
            lambda connection: (connection.execute(query).fetchall(), breakers(connection))
        )
        found = {row[0]: Waiting(*row) for row in rows}
        for name, breaker in open_breakers.items():
            here = found.get(name, Waiting(name))
            found[name] = replace(here, paused_seconds=breaker.remaining_seconds, answer=breaker.answer)
        return [found[name] for name in sorted(found)]

    def events(
        self, destinations: Sequence[str], ids: Sequence[int], *, is_dead: bool | None = None
    ) -> Sequence[KeptEvent]:
        """As :meth:`Outbox.events <spark_lineage.deliver.outbox.outbox.Outbox.events>`."""
        conditions, values = ["1 = 1"], []
        if destinations:
            conditions.append(f"destination IN ({_places(destinations)})")
            values += [*destinations]
        if is_dead is not None:
            conditions.append(f"is_dead = {int(is_dead)}")
        query = f"SELECT {COLUMNS} FROM {JOINED} WHERE {' AND '.join(conditions)} ORDER BY events.id"  # noqa: S608
        rows = self._database.read(lambda connection: connection.execute(query, values).fetchall())
        wanted = set(ids)
        return [kept(row) for row in rows if not wanted or row[0] in wanted]

    def open_runs(self) -> Mapping[str, str]:
        """As :meth:`Outbox.open_runs <spark_lineage.deliver.outbox.outbox.Outbox.open_runs>`."""
        query = "SELECT run_id, job FROM open_runs"
        return dict(self._database.read(lambda connection: connection.execute(query).fetchall()))

    def has_ended(self, destination: str, run_id: str) -> bool:
        """As :meth:`Outbox.has_ended <spark_lineage.deliver.outbox.outbox.Outbox.has_ended>`."""
        return bool(self._database.read(lambda connection: ends_of(connection, destination, run_id)))

    def content(self, event_id: int) -> bytes | None:
        """As :meth:`Outbox.content <spark_lineage.deliver.outbox.outbox.Outbox.content>`."""
        query = "SELECT content FROM events WHERE id = ?"
        row = self._database.read(lambda connection: connection.execute(query, (event_id,)).fetchone())
        return None if row is None else bytes(row[0])

    def retry(self, ids: Sequence[int], *, is_forced: bool) -> Retried:
        """As :meth:`Outbox.retry <spark_lineage.deliver.outbox.outbox.Outbox.retry>`."""
        dead = self.events((), ids, is_dead=True) if ids else ()

        def work(connection: sqlite3.Connection) -> Retried:
            waiting, late = [], []
            for event in dead:
                if event.head.reopens and not is_forced and has_ended(connection, event):
                    late.append(event)
                    continue
                waiting.append(event)
                connection.execute("DELETE FROM answers WHERE event_id = ?", (event.id,))
                try:
                    connection.execute(
                        "UPDATE events SET is_dead = 0, is_forced = ? WHERE id = ? AND is_dead = 1",
                        (int(is_forced), event.id),
                    )
                except sqlite3.IntegrityError:
                    # The same content waits already.
                    connection.execute("DELETE FROM events WHERE id = ?", (event.id,))
            return Retried(waiting, late)

        return self._database.write(work, is_durable=True)

    def drop(self, ids: Sequence[int]) -> int:
        """As :meth:`Outbox.drop <spark_lineage.deliver.outbox.outbox.Outbox.drop>`."""

        def work(connection: sqlite3.Connection) -> int:
            return sum(connection.execute("DELETE FROM events WHERE id = ?", (one,)).rowcount for one in ids)

        return self._database.write(work, is_durable=True)


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
