"""The outbox in one directory: put an event, have it delivered, see what waits, and decide about what was refused."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.deliver.outbox.delivery import Drain
from spark_lineage.deliver.outbox.kept_event import (
    KeptEvent,
    OutboxError,
    OutboxFullError,
    Retried,
    Waiting,
    head_of,
    restored,
)
from spark_lineage.deliver.outbox.store import COLUMNS, Store, breakers, ends_of, has_ended, kept
from spark_lineage.launch.bounded_run import OUTBOX_FILES, BoundedRun

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

__all__ = ["Delivered", "Outbox", "OutboxError", "OutboxFullError"]

_log = logging.getLogger(__name__)

DEFAULT_BYTES = 500_000_000
# Of the time of a delivery, for noting that a backend gave no answer.
_RESERVE = 0.04
_MAX_RESERVE_SECONDS = 0.2


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

    Nothing is opened or made before it is needed, and an outbox may be used on both sides of a fork.

    :param directory: made where it is missing, for its owner alone (0700)
    :param max_bytes: how many bytes of events it holds at most; then RUNNING events and dead letters make room
    """

    def __init__(self, directory: Path, *, max_bytes: int = DEFAULT_BYTES) -> None:
        self.directory = directory
        self._max_bytes = max_bytes
        self._store = Store(directory)
        self._database = self._store.database

    @OUTBOX_FILES.bounded
    def put(self, destination: str, content: bytes) -> None:
        """Keep an event; it is on disk, fsynced, when this returns.

        Content that already waits for the destination is kept once, and so is the START of a run until its end is put.

        :param destination: the id of a connection, or ``conn_id/member``, or ``[openlineage]``
        :param content: the JSON of one event of OpenLineage, without secrets
        :raises OutboxError: when it cannot be kept; the text says what to do
        :raises TimeoutError: when its disk hangs; it may still be kept later
        """
        running, dead = self._store.add(destination, head_of(content), content, self._max_bytes)
        if running or dead:
            _log.warning(
                "The outbox in %s is full: %d RUNNING events and %d dead letters were thrown away for a new event.",
                self.directory,
                running,
                dead,
            )

    @OUTBOX_FILES.bounded
    def sent_unkept(self, destination: str, content: bytes) -> None:
        """Learn that a backend has an event that could not be kept: what waits of a run that has ended is not sent."""
        head = head_of(content)
        if head.is_terminal and head.run_id:
            with suppress(OutboxError, TimeoutError):
                self._store.passed(destination, head)

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
        until = time.monotonic() + seconds
        reserve = min(_MAX_RESERVE_SECONDS, seconds * _RESERVE)
        is_over = threading.Event()
        if seconds <= 0:
            is_over.set()
        drains = [
            Drain(self._store, name, open_transport, is_over, is_asked_for=is_asked_for)
            for name in dict.fromkeys(destinations)
        ]
        threads = [_start(drain.run, drain.destination) for drain in drains]
        for thread in threads:
            thread.join(max(0.0, until - reserve - time.monotonic()))
        is_over.set()
        if any(drain.in_flight for drain in drains):

            def give_up() -> None:
                for drain in drains:
                    with suppress(OutboxError):
                        drain.give_up(seconds)

            _start(give_up, "late").join(max(0.0, until - time.monotonic()))
        return Delivered(
            sum(drain.sent for drain in drains),
            sum(drain.waiting for drain in drains),
            sum(drain.refused for drain in drains),
            sum(drain.discarded for drain in drains),
        )

    def destinations(self) -> Sequence[Waiting]:
        """Return for each destination how much waits, how much was refused, and whether its breaker is open."""
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
        self, destinations: Iterable[str] = (), *, ids: Iterable[int] = (), is_dead: bool | None = None
    ) -> Sequence[KeptEvent]:
        """Return what is kept, oldest first: of these destinations, of these ids, waiting or refused; else all."""
        condition = "" if is_dead is None else f"WHERE is_dead = {int(is_dead)}"
        events = map(kept, self._database.rows(f"SELECT {COLUMNS} FROM events {condition} ORDER BY id"))  # noqa: S608
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
        return bool(self._database.read(lambda connection: ends_of(connection, destination, run_id)))

    def content(self, event_id: int) -> bytes | None:
        """Return the JSON of an event, None where it is not there any more."""
        rows = self._database.rows("SELECT content FROM events WHERE id = ?", (event_id,))
        return bytes(rows[0][0]) if rows else None

    def retry(self, ids: Iterable[int], *, is_forced: bool = False) -> Retried:
        """Have dead letters wait again, in their old place.

        A START or RUNNING of a run whose end has been delivered is left, unless ``is_forced``: backends would show the
        run as running for ever.
        """
        wanted = set(ids)
        dead = self.events(ids=wanted, is_dead=True) if wanted else ()
        again = (
            "UPDATE events SET is_dead = 0, is_forced = ?, attempts = 0, answer = '', blames = 0, blamed_at = 0"
            " WHERE id = ? AND is_dead = 1"
        )

        def work(connection: sqlite3.Connection) -> Retried:
            late = [one for one in dead if one.head.reopens and not is_forced and has_ended(connection, one)]
            waiting = [one for one in dead if one not in late]
            for event in waiting:
                try:
                    connection.execute(again, (int(is_forced), event.id))
                except sqlite3.IntegrityError:
                    # The same content waits already.
                    connection.execute("DELETE FROM events WHERE id = ?", (event.id,))
            return Retried(waiting, late)

        return self._database.write(work)

    def drop(self, ids: Iterable[int]) -> int:
        """Throw events away, waiting or refused, and return how many there were."""
        rows = [(one,) for one in ids]
        removal = "DELETE FROM events WHERE id = ?"
        return self._database.write(lambda connection: connection.executemany(removal, rows).rowcount)

    @OUTBOX_FILES.bounded
    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        self._database.close()


def send_unkept(content: bytes, open_transport: Callable[[], Transport], seconds: float) -> None:
    """Send the JSON of an event that cannot be kept, and wait for the answer no longer than this.

    :raises TimeoutError: when there was none by then; it may still be taken
    :raises Exception: what the transport raises
    """
    # Better once, without a second try, than never.
    sending = BoundedRun(lambda: open_transport().emit(restored(content)), "spark-lineage-unkept")
    if not sending.wait(seconds):
        raise TimeoutError("the backend has not answered in time: this event may be lost")


def _start(work: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=f"spark-lineage-outbox {name}", daemon=True)
    thread.start()
    return thread
