"""What the outbox knows of an event (for order and space) and of a destination (its breaker)."""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass

import msgspec

# After one of these a backend takes START and RUNNING of the run for a new beginning.
TERMINAL = frozenset({"COMPLETE", "FAIL", "ABORT"})
CAP_SECONDS = 300.0
# A backend that asks for a day does not get it.
RETRY_AFTER_CAP_SECONDS = 3600.0
_FIRST_SECONDS = 2.0
# A DAG file may seed that of Python, and then all workers come back at once.
_chance = random.SystemRandom()


class OutboxError(Exception):
    """An event cannot be kept, or what is kept cannot be read; the text says what to do."""


@dataclass(frozen=True)
class Head:
    """What an event is about; a ``JobEvent`` and a ``DatasetEvent`` have no run, and no type.

    ``has_datasets`` is known of an event that is about to be kept.
    """

    run_id: str
    event_type: str
    event_time: str
    job: str
    has_datasets: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether it ends its run."""
        return self.event_type in TERMINAL


@dataclass(frozen=True)
class KeptEvent:
    """One event that waits, or that was refused (``is_dead``), with what the backend last answered.

    ``stored_at`` is in seconds since the epoch, for people to see; order is by ``id``. ``attempts``: how often it was
    not taken.
    """

    id: int
    destination: str
    head: Head
    stored_at: float
    size: int
    is_dead: bool
    attempts: int
    answer: str


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
class Breaker:
    """An open breaker: when it opened, in seconds since the epoch, and for how long.

    After ``wait_seconds`` it is half open: one event is sent as a probe. It is closed, and forgotten, when a backend
    has answered anything that is no reason to wait. The fields are the columns of its table.
    """

    failures: int
    opened_at: float
    wait_seconds: float
    answer: str

    @property
    def remaining_seconds(self) -> float:
        """How long nothing may be sent; 0 where the clock was set back behind the opening."""
        passed = time.time() - self.opened_at
        return max(0.0, self.wait_seconds - passed) if passed >= 0 else 0.0


def opened(before: Breaker | None, answer: str, retry_after_seconds: float | None = None) -> Breaker:
    """Return the breaker after one more failure: it waits twice as long each time, at most five minutes.

    The time varies by half, so that many workers do not come back at once. What the backend asks for (``Retry-After``)
    comes first.
    """
    failures = (before.failures if before else 0) + 1
    if retry_after_seconds is not None:
        wait = min(retry_after_seconds, RETRY_AFTER_CAP_SECONDS)
    else:
        longest = min(CAP_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures - 1, 16))
        wait = _chance.uniform(longest / 2, longest)
    return Breaker(failures, time.time(), wait, answer)


def head_of(content: bytes) -> Head:
    """Return what an event is about.

    :raises OutboxError: for what is no event of OpenLineage
    """
    try:
        event = msgspec.json.decode(content)
        subject = event.get("job") or event["dataset"]
        values = {
            "run_id": event["run"]["runId"] if event.get("run") is not None else "",
            "event_type": event.get("eventType") or "",
            "event_time": event.get("eventTime") or "",
            "job": f"{subject['namespace']} {subject['name']}",
            "has_datasets": bool(event.get("inputs") or event.get("outputs")),
        }
        return msgspec.convert(values, Head)
    except (msgspec.DecodeError, ValueError, AttributeError, LookupError, TypeError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise OutboxError(f"this is not an event of OpenLineage ({problem}); the outbox keeps nothing else")


def digest_of(content: bytes) -> bytes:
    """Return what is the same for the same content only."""
    return hashlib.blake2b(content, digest_size=16).digest()
