"""Makes one listener, and delivers events to it through a bounded queue and a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from spark_lineage.launch.log import Log

if TYPE_CHECKING:
    from spark_lineage.notify.context import ListenerContext
    from spark_lineage.notify.events import Event

# Some 200,000 changes of status: what a job does in a moment is delivered in another.
MAX_QUEUED_BYTES = 64_000_000
# The reserve for the last event: seconds, and the part of a short time.
_RESERVE_SECONDS, _RESERVE_PART = 1.0, 0.2


class ListenerError(ValueError):
    """A listener that cannot be made; the text says which, where it was named, and what to do."""


def source_name(source: Any) -> str:
    """Return what to call a listener in the log."""
    if isinstance(source, str):
        return source
    kind = source if hasattr(source, "__qualname__") else type(source)
    return f"{kind.__module__}.{kind.__qualname__}"


def make_listener(source: Any, context: ListenerContext) -> Any:
    """Return the listener that a class path or an object stands for.

    It has ``on_event(event)`` at least; ``close()`` is called after the last event if it has one.

    :param source: a listener, or what makes one of a context (a class, a function); or the class path of either
    :raises ListenerError: when it cannot be imported or made, or is none
    """
    what = f"lineage_listeners names {source_name(source)}, which"
    listener = source
    if isinstance(source, str):
        module, _, attribute = source.rpartition(".")
        try:
            listener = getattr(import_module(module), attribute)
        except Exception as error:
            # A module may raise anything when it is imported.
            raise ListenerError(
                f"{what} cannot be imported on this worker ({type(error).__name__}: {error}); give "
                "'package.module.Class' of a package that is installed where tasks run"
            ) from error
    if isinstance(listener, type) or not callable(getattr(listener, "on_event", None)):
        try:
            listener = listener(context)
        except Exception as error:
            raise ListenerError(
                f"{what} made no listener of a context ({type(error).__name__}: {error}); its own documentation says "
                "what it needs"
            ) from error
    if not callable(getattr(listener, "on_event", None)):
        raise ListenerError(f"{what} made a listener without on_event(event); give it one")
    return listener


class DeliveryCounts(Struct):
    """How many events one listener took or lost: each is counted once.

    ``failed`` are those that it raised for, ``dropped`` those that its full queue had no room for, ``undelivered``
    those that there was no time for, the one among them that it was still working on at the end. ``is_late`` is
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
    """One listener, with a thread that makes it, gives it every event in order, and closes it.

    Nothing of the listener's own code, not even its import, runs on the thread that notifies. Where there is no room or
    no time for all, it gets the first and the last event of the job, and what lies between is left out.

    :param max_bytes: about how much memory the events may take that wait for it
    """

    def __init__(self, name: str, make: Callable[[], Any], logger: Log, *, max_bytes: int = MAX_QUEUED_BYTES) -> None:
        self.counts = DeliveryCounts(name)
        self._make = make
        self._log = Log(logger)
        self._max_bytes = max_bytes
        self._queue: deque[Event] = deque()
        self._queued_bytes = 0
        self._changed = Condition()
        self._is_closing = self._is_abandoned = self._is_working = False
        self._deadline = self._reserve = self._seconds_of_last = 0.0
        self._named: set[str] = set()
        self._thread = Thread(target=self._run, name=f"spark-lineage-listener {name}", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue an event, without waiting; without room, drop the oldest that is not kept."""
        with self._changed:
            if self._is_closing:
                self.counts.undelivered += 1
                return
            self._queue.append(event)
            self._queued_bytes += event.size
            while self._queued_bytes > self._max_bytes and self._drop_oldest():
                self.counts.dropped += 1
            self._changed.notify()

    def stop(self, seconds: float) -> None:
        """Take no more events; the thread has so long to deliver the rest."""
        with self._changed:
            self._is_closing = True
            self._reserve = min(_RESERVE_SECONDS, seconds * _RESERVE_PART)
            self._deadline = monotonic() + seconds
            self._changed.notify()

    def join(self) -> DeliveryCounts:
        """Wait for the thread until its time is over: nothing is delivered after it. Return the final counts."""
        self._thread.join(max(0.0, self._deadline - monotonic()))
        with self._changed:
            self._is_abandoned = True
            self.counts.is_late = self._thread.is_alive()
            self.counts.undelivered += len(self._queue) + self._is_working
            self._queue.clear()
            self._is_working = False
            return structs.replace(self.counts)

    def _drop_oldest(self) -> bool:
        for position, queued in enumerate(self._queue):
            if not queued.is_kept:
                del self._queue[position]
                self._queued_bytes -= queued.size
                return True
        return False

    def _run(self) -> None:
        listener = None
        with self._complaining("It gets no events"):
            listener = self._make()
        while (event := self._next()) is not None:
            is_taken = False
            if listener is not None:
                started = monotonic()
                with self._complaining(f"It has not taken a {type(event).__name__}; more of the same are counted"):
                    listener.on_event(event)
                    is_taken = True
                self._seconds_of_last = monotonic() - started
            with self._changed:
                # Else it was counted as undelivered.
                if not self._is_abandoned:
                    self._is_working = False
                    self.counts.delivered += is_taken
                    self.counts.failed += not is_taken
        with self._complaining("It may have left something open"):
            if callable(close := getattr(listener, "close", None)):
                close()

    def _next(self) -> Event | None:
        with self._changed:
            while not (self._queue or self._is_closing):
                self._changed.wait()
            if self._is_closing:
                self._hurry()
            if not self._queue or self._is_abandoned:
                return None
            self._is_working = True
            event = self._queue.popleft()
            self._queued_bytes -= event.size
            return event

    def _hurry(self) -> None:
        """Leave out what lies before the end when one more of the same could take the time of that."""
        if not self._queue or not self._queue[-1].is_kept:
            return
        left = self._deadline - monotonic()
        if left <= max(self._reserve, 2 * self._seconds_of_last):
            kept = deque(event for event in self._queue if event.is_kept)
            self.counts.undelivered += len(self._queue) - len(kept)
            self._queue = kept

    @contextmanager
    def _complaining(self, consequence: str) -> Iterator[None]:
        """Log what the listener raises, each kind of error once: one that always raises would fill the log."""
        try:
            yield
        except BaseException as error:
            # SystemExit too: it would end the thread without a word in the log.
            kind = type(error).__name__
            if kind in self._named:
                return
            self._named.add(kind)
            try:
                text = f"{kind}: {error}"
                self._log.debug("Where it happened:", exc_info=error)
            except BaseException:
                # It is of a class of the listener's own.
                text = f"{kind}, which has no text"
            self._log.warning("Listener %s: %s. %s.", self.counts.listener, text, consequence)
