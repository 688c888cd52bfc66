"""The circuit breaker of a destination: how long nothing is sent to a backend that did not take an event."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

_FIRST_SECONDS = 2.0
CAP_SECONDS = 300.0
# A backend that asks for a day does not get it.
RETRY_AFTER_CAP_SECONDS = 3600.0
# A DAG file may seed that of Python, and then all workers come back at once.
_chance = random.SystemRandom()


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
