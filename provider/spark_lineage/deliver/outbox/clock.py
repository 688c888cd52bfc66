"""Measures the time since something that another process wrote down, whatever happens to the clock meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Linux: new at each start of the machine, and the same in all of its containers.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Moment:
    """A point in time: by the clock that runs since the machine was started, and by the one that people set."""

    boot_id: str
    since_boot_seconds: float
    wall_seconds: float


def now() -> Moment:
    """Return the current moment."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Moment(_boot_id(), time.clock_gettime(boot_clock), time.time())


def seconds_since(moment: Moment) -> float | None:
    """Return how long ago a moment was.

    On another machine, and after a restart, only the clock that people set can tell. None where it was set back behind
    the moment.
    """
    current = now()
    if current.boot_id and current.boot_id == moment.boot_id:
        seconds = current.since_boot_seconds - moment.since_boot_seconds
    else:
        seconds = current.wall_seconds - moment.wall_seconds
    return seconds if seconds >= 0 else None


@cache
def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
