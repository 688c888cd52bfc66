"""The circuit breaker of a destination: how long nothing is sent to a backend that did not take an event."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FIRST_SECONDS = 2.0
CAP_SECONDS = 300.0
# A backend that asks for a day does not get it.
RETRY_AFTER_CAP_SECONDS = 3600.0
# A DAG file may seed that of Python, and then all workers come back at once.
_chance = random.SystemRandom()
# Linux: new at each start of the machine, and the same in all of its containers.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Breaker:
    """An open breaker: when it opened, by two clocks, and for how long.

    After ``wait_seconds`` it is half open: one event is sent as a probe. It is closed, and forgotten, when a backend
    has answered anything that is no reason to wait. The fields are the columns of its table.
    """

    failures: int
    boot_id: str
    since_boot_seconds: float
    wall_seconds: float
    wait_seconds: float
    answer: str

    @property
    def remaining_seconds(self) -> float:
        """How long nothing may be sent.

        On another machine, and after a restart, only the clock that people set can tell; 0 where it was set back behind
        the opening, as nobody knows how long it has been.
        """
        boot_id, since_boot_seconds, wall_seconds = _now()
        if boot_id and boot_id == self.boot_id:
            passed = since_boot_seconds - self.since_boot_seconds
        else:
            passed = wall_seconds - self.wall_seconds
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
    return Breaker(failures, *_now(), wait, answer)


def _now() -> tuple[str, float, float]:
    """Return the start of the machine that this is, and the seconds by the clock of that start and by the wall's."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return _boot_id(), time.clock_gettime(boot_clock), time.time()


@cache
def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
