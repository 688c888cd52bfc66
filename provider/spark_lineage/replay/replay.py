"""Sends kept events again: in order, at a bounded rate, until each backend has accepted or refused each of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from spark_lineage.deliver.outgoing import TERMINAL, Outgoing
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import Later, Refused, Sender
from spark_lineage.replay.merged_events import MergedEvent, digest_of
from spark_lineage.secrets.redaction import redact_event

DEFAULT_RATE = 20.0
_TRIES = 4
_RETRY_AFTER_CAP_SECONDS = 60.0
# An answer such as 500 may be the fault of one event. When one event after the other gets it, it is none of theirs.
_FAILURES_IN_A_ROW = 3


@dataclass
class Tally:
    """How many events one destination took, refused for good, and did not take otherwise.

    ``problem`` says why nothing more was sent to it, empty where all was.
    """

    total: int
    sent: int = 0
    refused: int = 0
    problem: str = ""
    failed_in_a_row: int = field(default=0, repr=False)

    @property
    def left(self) -> int:
        """How many events may be sent again later."""
        return self.total - self.sent - self.refused


def in_order(events: Iterable[MergedEvent]) -> list[MergedEvent]:
    """Return the events as they are to be sent, each content once.

    By event time; of one time, as they came. But a run begins with its START and ends with its end, whatever the clocks
    of those who sent them said: a backend takes a run that goes on after its end for one that runs.
    """
    steps: dict[bytes, MergedEvent] = {}
    begun: dict[str, datetime] = {}
    last: dict[str, datetime] = {}
    for step in events:
        steps.setdefault(step.digest, step)
        if step.event_type == "START":
            begun[step.run_id] = min(step.time, begun.get(step.run_id, step.time))
        if step.event_type not in TERMINAL:
            last[step.run_id] = max(step.time, last.get(step.run_id, step.time))

    def place(step: MergedEvent) -> tuple[datetime, int]:
        if step.event_type in TERMINAL:
            return max(step.time, last.get(step.run_id, step.time)), 2
        return max(step.time, begun.get(step.run_id, step.time)), 0 if step.event_type == "START" else 1

    return sorted(steps.values(), key=place)


class Replay:
    """One pass over some events, for some destinations.

    :param destinations: with what their events are encoded for
    :param rate: events a second, to each destination
    :param say: takes a line for the person who waits
    :raises SettingError: when a destination cannot be opened
    """

    def __init__(
        self,
        steps: Sequence[MergedEvent],
        destinations: Mapping[str, Profile],
        open_sender: Callable[[str], Sender],
        *,
        rate: float = DEFAULT_RATE,
        log: Callable[[str], object],
    ) -> None:
        self.tallies = {destination: Tally(len(steps)) for destination in destinations}
        self._steps = steps
        self._profiles = destinations
        self._senders = {destination: open_sender(destination) for destination in destinations}
        self._interval_seconds = 1 / rate
        self._log = log

    def run(self) -> Iterator[int]:
        """Send, and yield after each event how many are done; ends early when no backend accepts any more."""
        next_at = time.monotonic()
        for number, step in enumerate(self._steps, 1):
            time.sleep(max(0.0, next_at - time.monotonic()))
            next_at = max(next_at, time.monotonic() - self._interval_seconds) + self._interval_seconds
            open_ones = [destination for destination, tally in self.tallies.items() if not tally.problem]
            if not open_ones:
                return
            if content := self._read_again(step):
                for destination in open_ones:
                    self._send(destination, step, sendable(content, self._profiles[destination]))
            yield number

    def close(self) -> None:
        """Close the connections."""
        for sender in self._senders.values():
            sender.close()

    def _read_again(self, step: MergedEvent) -> bytes | None:
        try:
            if digest_of(content := step.content) == step.digest:
                return content
            problem = "the file has changed meanwhile"
        except OSError as error:
            problem = str(error.strerror)
        self._log(f"cannot read again the {_name_of(step)} in {step.path}: {problem}")
        return None

    def _send(self, destination: str, step: MergedEvent, event: Outgoing) -> None:
        tally = self.tallies[destination]
        try:
            _PERSISTENT.copy()(self._senders[destination].send, event)
        except Refused as error:
            tally.refused += 1
            tally.failed_in_a_row = 0
            self._log(f"{destination} refused the {_name_of(step)}: {error}")
        except Later as error:
            tally.failed_in_a_row += 1
            self._log(f"{destination} did not accept the {_name_of(step)}: {error}")
            if error.is_away or tally.failed_in_a_row >= _FAILURES_IN_A_ROW:
                tally.problem = str(error)
                self._log(f"nothing more is sent to {destination}")
        else:
            tally.sent += 1
            tally.failed_in_a_row = 0


def sendable(content: bytes, profile: Profile) -> Outgoing:
    """Return an event as it is sent: redacted, and encoded for its backend."""
    return Outgoing.of(profile.encoded(json.dumps(redact_event(json.loads(content))).encode()))


def _name_of(step: MergedEvent) -> str:
    return f"{step.event_type or 'event'} of {step.job}, run {step.run_id}"


def _wait_seconds(state: RetryCallState) -> float:
    """Wait longer each time, and as long as the backend asks for (``Retry-After``)."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, Later) else None
    return max(_GROWING(state), min(asked or 0.0, _RETRY_AFTER_CAP_SECONDS))


_GROWING = wait_random_exponential(multiplier=1, min=0.2, max=8)
_PERSISTENT = Retrying(
    stop=stop_after_attempt(_TRIES), wait=_wait_seconds, retry=retry_if_exception_type(Later), reraise=True
)
