"""Send the waiting events of one destination in order, until none waits, its backend is away, or the time is over."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from tenacity import (
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_random_exponential,
)

from spark_lineage.deliver.outbox.kept_event import Breaker, KeptEvent, OutboxError, opened
from spark_lineage.deliver.stored_event import restore_any
from spark_lineage.deliver.transports.errors import Answer, answer_of
from spark_lineage.launch.directory import encoded
from spark_lineage.launch.lock import locked
from spark_lineage.secrets.redaction import redact, redact_error

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

    from spark_lineage.deliver.outbox.outbox import Outbox

_log = logging.getLogger(__name__)

# An event that failed in so many deliveries may be the reason itself: another one is tried. If that gets through, and
# this one fails once more, it is.
SUSPECT_AFTER = 5
# Within one delivery, of an answer that may be another one a moment later.
_REPETITIONS = 3
_PAUSE_SECONDS = 0.05
# More refusals than these are in the log by their number alone.
_LOGGED_REFUSALS = 3


@dataclass
class Drain:
    """One delivery to one destination; only one of all processes sends to it at a time.

    The counts may be read at any time from another thread. ``waiting`` is what waits at least; 1 before anything is
    known. ``in_flight``: the event that a backend has not answered yet. ``is_over`` is set when nothing more may be
    sent. ``is_asked_for``: a user wants it now, so the first event is sent although the breaker is open.
    """

    outbox: Outbox
    destination: str
    open_transport: Callable[[str], Transport]
    is_over: Event
    is_asked_for: bool
    sent: int = 0
    waiting: int = 1
    refused: int = 0
    discarded: int = 0
    in_flight: KeptEvent | None = None
    _last_id: int = 0
    _other_was_taken: bool = False

    def run(self) -> None:
        """Send; errors are logged, and events that are not sent stay."""
        try:
            self.waiting, self._last_id = self.outbox.backlog(self.destination)
            if self.waiting:
                self._take_turn()
        except OutboxError as error:
            _log.error("Events for %s are not sent: %s", self.destination, redact(str(error)))
        except Exception as error:
            _log.warning("Events for %s stay in the outbox: %s", self.destination, answer_of(error).text)
            redact_error(error)
            _log.debug("Where it happened:", exc_info=True)

    def _take_turn(self) -> None:
        path = self.outbox.directory / f"drain-{encoded(self.destination)}.lock"
        with locked(path, self._wait) as descriptor:
            if descriptor is not None and not self.is_over.is_set() and not self._is_paused:
                # Not on a full disk, where what was sent could not be removed: it would be sent by every task again.
                self.outbox.begin_drain()
                self._send_all()
            # What others have put meanwhile, they send.
            self.waiting, _ = self.outbox.backlog(self.destination, self._last_id)

    def _wait(self) -> bool:
        """Wait while another one sends to the destination, until what waited at the beginning is gone."""
        if self.is_over.wait(_PAUSE_SECONDS):
            return False
        count, _ = self.outbox.backlog(self.destination, self._last_id)
        return bool(count) and not self._is_paused

    @property
    def _breaker(self) -> Breaker | None:
        return self.outbox.breakers().get(self.destination)

    @property
    def _is_paused(self) -> bool:
        return not self.is_asked_for and (breaker := self._breaker) is not None and breaker.remaining_seconds > 0

    def _send_all(self) -> None:
        try:
            transport = self.open_transport(self.destination)
        except Exception as error:
            self._put_off(None, Answer(f"it cannot be opened: {answer_of(error).text}", is_suspect=False))
            return
        try:
            while not self.is_over.is_set() and (following := self._next()) is not None:
                if not self._send(*following, transport):
                    break
        finally:
            with suppress(Exception):
                transport.close(0)

    def _next(self) -> tuple[KeptEvent, bytes | None] | None:
        following = self.outbox.next_waiting(self.destination)
        if following is None or following[0].attempts < SUSPECT_AFTER or self._other_was_taken:
            return following
        # An event of another run shows whether the backend is the reason; the order of two runs does not matter.
        return self.outbox.next_waiting(self.destination, tried_less_than=SUSPECT_AFTER) or following

    def _send(self, event: KeptEvent, content: bytes | None, transport: Transport) -> bool:
        """Send one event and note the answer; return whether the next one may be sent."""
        if self.outbox.is_late(event):
            self.outbox.drop([event.id])
            self.discarded += 1
            _log.debug("A %s of run %s is not sent: its end came before.", event.head.event_type, event.head.run_id)
        else:
            answer = self._answer(event, content, transport)
            if answer is None:
                self.outbox.taken(event)
                self.sent += 1
                self._other_was_taken = True
            elif answer.is_refusal:
                self._refuse(event, answer.text)
            elif answer.is_suspect and self._other_was_taken and event.attempts >= SUSPECT_AFTER:
                tries = event.attempts + 1
                self._refuse(event, f"given up after {tries} tries, while others were accepted: {answer.text}")
            else:
                self._put_off(event, answer)
                return False
        self.waiting = max(0, self.waiting - 1)
        return True

    def _answer(self, event: KeptEvent, content: bytes | None, transport: Transport) -> Answer | None:
        """Return the answer of a backend that did not take the event, None of one that did."""
        if content is None:
            return Answer("it cannot be sent: the disk gives other bytes than those that were written", is_refusal=True)
        try:
            sendable = restore_any(content)
        except ValueError as error:
            return Answer(f"it cannot be sent: {redact(str(error))}", is_refusal=True)
        # A half-open breaker lets one probe through.
        is_probe = self._breaker is not None
        sending = Retrying(
            retry=retry_if_exception(lambda error: answer_of(error).is_brief),
            stop=stop_after_attempt(1 if is_probe else _REPETITIONS) | stop_when_event_set(self.is_over),
            wait=wait_random_exponential(multiplier=0.1, max=1),
            sleep=sleep_using_event(self.is_over),
            reraise=True,
        )
        self.in_flight = event
        try:
            sending(transport.emit, sendable)
        except Exception as error:
            return answer_of(error)
        finally:
            self.in_flight = None
        return None

    def _refuse(self, event: KeptEvent, text: str) -> None:
        self.outbox.refuse(event, text)
        self.refused += 1
        _log.log(
            logging.WARNING if self.refused <= _LOGGED_REFUSALS else logging.DEBUG,
            "%s refuses a %s of run %s, which becomes a dead letter: %s",
            self.destination,
            event.head.event_type or "event",
            event.head.run_id,
            text,
        )

    def _put_off(self, event: KeptEvent | None, answer: Answer) -> None:
        breaker = opened(self._breaker, answer.text, answer.retry_after_seconds)
        self.outbox.put_off(event, self.destination, breaker, is_tried=answer.is_suspect)
        _log.warning(
            "%s does not accept events (%s). They wait in the outbox; the next is tried in %.0f s at the earliest.",
            self.destination,
            answer.text,
            breaker.wait_seconds,
        )

    def give_up(self, seconds: float) -> None:
        """Open the breaker for a backend that has not answered; called when the caller's time is over."""
        event = self.in_flight
        if event is not None and not self.sent:
            with suppress(OutboxError):
                self._put_off(event, Answer(f"no answer within {seconds:g} s"))
