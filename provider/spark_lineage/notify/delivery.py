"""Delivers events to one listener: a bounded queue and a thread of its own, so that it harms nobody but itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from spark_lineage.emit.redacted_error import redact_error
from spark_lineage.emit.redaction import redact
from spark_lineage.notify.loading import Listener

if TYPE_CHECKING:
    from spark_lineage.collect.collector import Log
    from spark_lineage.notify.events import Event

MAX_QUEUED = 10_000


class DeliveryCounts(Struct):
    """What became of the events for one listener: each is counted once.

    ``failed`` are those that it raised for, ``dropped`` those that its full queue had no room for, ``undelivered``
    those that were left when the time was over; one that it was still working on then is one of them. ``is_late`` is
    whether it had not ended by then.
    """

    listener: str
    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    undelivered: int = 0
    is_late: bool = False

    @property
    def lost(self) -> int:
        """How many events it has not taken."""
        return self.failed + self.dropped + self.undelivered


class Delivery:
    """One listener, told everything in order by a thread that makes it, tells it, and closes it.

    Nothing of the listener's own code, not even its import, runs on the thread that notifies.

    :param name: of the listener, for the log
    :param make: gives the listener
    """

    def __init__(self, name: str, make: Callable[[], Listener], logger: Log, *, max_queued: int = MAX_QUEUED) -> None:
        self.counts = DeliveryCounts(name)
        self._make = make
        self._log = logger
        self._max_queued = max_queued
        self._queue: deque[Event] = deque()
        self._changed = Condition()
        self._is_closing = False
        self._is_abandoned = False
        self._is_working = False
        self._named: set[str] = set()
        self._thread = Thread(target=self._run, name=f"spark-lineage-listener {name}", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue an event, without waiting; the oldest that is not a last word makes room for it."""
        with self._changed:
            if self._is_closing:
                self.counts.undelivered += 1
                return
            if len(self._queue) >= self._max_queued:
                self.counts.dropped += 1
                if not self._make_room(event):
                    return
            self._queue.append(event)
            self._changed.notify()

    def stop(self) -> None:
        """Take no more events, and let the thread end when it has told what is left."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()

    def join(self, seconds: float) -> DeliveryCounts:
        """Wait so long for the thread, then give up: nothing is told from then on. Gives the final counts."""
        self._thread.join(max(0.0, seconds))
        with self._changed:
            self._is_abandoned = True
            self.counts.is_late = self._thread.is_alive()
            self.counts.undelivered += len(self._queue) + self._is_working
            self._queue.clear()
            self._is_working = False
            return structs.replace(self.counts)

    def _make_room(self, event: Event) -> bool:
        for position, queued in enumerate(self._queue):
            if not queued.is_last_word:
                del self._queue[position]
                return True
        if event.is_last_word:
            self._queue.popleft()
        return event.is_last_word

    def _run(self) -> None:
        listener = self._made()
        while (event := self._next()) is not None:
            self._count(is_taken=listener is not None and self._tell(listener, event))
        close = getattr(listener, "close", None)
        if callable(close):
            self._end(close)

    def _made(self) -> Listener | None:
        try:
            return self._make()
        except BaseException as error:
            # SystemExit too, here and below: nobody else would learn that the thread is gone.
            self._complain(error, "It is told nothing")
            return None

    def _tell(self, listener: Listener, event: Event) -> bool:
        try:
            listener.on_event(event)
        except BaseException as error:
            self._complain(error, f"It has not taken a {type(event).__name__}; more of the same are counted")
            return False
        return True

    def _end(self, close: Callable[[], object]) -> None:
        try:
            close()
        except BaseException as error:
            self._complain(error, "It may have left something open")

    def _next(self) -> Event | None:
        with self._changed:
            while not (self._queue or self._is_closing):
                self._changed.wait()
            if not self._queue or self._is_abandoned:
                return None
            self._is_working = True
            return self._queue.popleft()

    def _count(self, *, is_taken: bool) -> None:
        with self._changed:
            if self._is_abandoned:
                return  # It was counted as undelivered.
            self._is_working = False
            if is_taken:
                self.counts.delivered += 1
            else:
                self.counts.failed += 1

    def _complain(self, error: BaseException, consequence: str) -> None:
        """Name each kind of error once: a listener that always raises would fill the log."""
        kind = type(error).__name__
        if kind in self._named:
            return
        self._named.add(kind)
        redact_error(error)
        self._log.warning("Listener %s: %s. %s.", self.counts.listener, redact(f"{kind}: {error}"), consequence)
        self._log.debug("Where it happened:", exc_info=error)
