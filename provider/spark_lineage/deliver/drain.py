"""Sends what waits in a spool, in order, until nothing is due."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from spark_lineage.deliver.pauses import BACKEND
from spark_lineage.deliver.sender import Later, Refused, Sender
from spark_lineage.deliver.spool import Entry, Outgoing, Spool, SpoolError
from spark_lineage.launch.log import Log

_log = Log(__name__)

# So many runs in a row, or so long, in vain: the backend is the reason, and not an event.
_RUNS_IN_VAIN, _SECONDS_IN_VAIN = 10, 30.0


class Drain:
    """Sends by one sender; the caller has the turn (``Spool.take_turn``).

    An event that the backend answers with an error steps aside with its run: the order within the run holds, others go
    on.

    :param lock: of the turn
    :param is_over: called before each event; whether nothing more may be sent
    """

    def __init__(self, spool: Spool, sender: Sender, lock: int, is_over: Callable[[], bool]) -> None:
        self.sent = self.refused = 0
        self._lock = lock
        self._spool = spool
        self._sender = sender
        self._pauses = spool.pauses
        self._is_over = is_over
        self._in_vain = 0
        self._since = time.monotonic()

    def run(self) -> None:
        """Send until nothing is due; what was put meanwhile is sent as well."""
        with suppress(SpoolError):
            self._spool.count(is_due=False)
        if (entry := self._spool.interrupted(self._lock)) is not None:
            # The backend may have taken it. It does not get it with each process that is killed while it waits.
            self._pauses.failed(entry.run_id, "the process that sent it was killed before the backend answered")
        try:
            while self._send_waiting():
                pass
        finally:
            self._spool.begin(self._lock, None)

    @property
    def is_due(self) -> bool:
        """Whether something waits that may be sent now."""
        return not self._pauses.seconds_left(BACKEND) and bool(self._spool.sendable(self._is_held, 1))

    def _is_held(self, entry: Entry) -> bool:
        return self._pauses.seconds_left(entry.run_id) > 0

    def _send_waiting(self) -> bool:
        """Send what is due now, and return whether there may be more."""
        has_sent, held = False, set[str]()
        for entry in self._spool.sendable(self._is_held):
            if self._is_over() or not self._spool.has_turn(self._lock) or self._pauses.seconds_left(BACKEND):
                return False
            if entry.run_id in held or self._spool.is_being_put(entry):
                held.add(entry.run_id)
            elif self._send(entry):
                has_sent = True
            else:
                held.add(entry.run_id)
        return has_sent

    def _send(self, entry: Entry) -> bool:
        """Send one event; return whether the next one of its run may be sent."""
        began = time.monotonic()
        try:
            body = self._spool.read(entry)
            if body is not None:
                self._spool.begin(self._lock, entry)
                self._sender.send(Outgoing.of(body))
        except SpoolError as error:
            return self._refuse(entry, f"it cannot be sent: {error}")
        except Refused as error:
            return self._refuse(entry, str(error))
        except Later as error:
            self._put_off(entry, error, time.monotonic() - began)
            return False
        try:
            self._spool.remove(entry)
        except SpoolError as error:
            # Else each task would send it again.
            self._pauses.failed(BACKEND, f"a sent event cannot be removed: {error}")
            return False
        self.sent += 1
        self._in_vain, self._since = 0, time.monotonic()
        self._pauses.taken(entry.run_id)
        return True

    def _refuse(self, entry: Entry, why: str) -> bool:
        try:
            self._spool.refuse(entry, why)
        except SpoolError as error:
            self._pauses.failed(entry.run_id, f"{why}; and it cannot be set aside: {error}")
            return False
        self.refused += 1
        _log.warning("A %s of run %s is refused: %s", entry.event_type or "event", entry.run_id, why)
        return True

    def _put_off(self, entry: Entry, error: Later, took_seconds: float) -> None:
        keys = [] if error.is_away else [entry.run_id]
        self._in_vain += len(keys)
        is_backend = self._in_vain >= _RUNS_IN_VAIN or time.monotonic() - self._since >= _SECONDS_IN_VAIN
        if error.is_away or is_backend:
            keys.append(BACKEND)
        for key in keys:
            self._pauses.failed(key, str(error), retry_after=error.retry_after, took_seconds=took_seconds)
