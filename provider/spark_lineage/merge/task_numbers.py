"""What the tasks of an application did, in numbers; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

# Names come from the program, which may make them up without end.
MAX_ACCUMULATORS = 100
_NAME_LENGTH = 200
_DIGITS = 30


class Accumulator(Struct, frozen=True, gc=False):
    """A number that the program's own tasks add up: of all its accumulators that are called ``label`` together."""

    label: str
    value: float


class TaskNumbers(Struct, frozen=True, gc=False):
    """What all tasks of one attempt of an application have done so far, failed and speculative ones too.

    ``finished``, ``failed`` and ``killed`` are tasks, as Spark's UI counts them, retries too. Bytes are those that
    Spark's sources and sinks count (Hadoop's file systems; not JDBC). ``gc_millis`` is that part of ``run_millis``, the
    time for which tasks ran on executors, in which their JVM collected garbage. ``accumulators`` are sorted by name.
    """

    application_id: str
    attempt_id: str
    source: str
    finished: int = 0
    failed: int = 0
    killed: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    memory_bytes_spilled: int = 0
    disk_bytes_spilled: int = 0
    run_millis: int = 0
    gc_millis: int = 0
    accumulators: tuple[Accumulator, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The attempt that they are of."""
        return self.application_id, self.attempt_id

    @property
    def tasks(self) -> int:
        """How many tasks have ended."""
        return self.finished + self.failed + self.killed

    @property
    def gc_share(self) -> float | None:
        """The part of the tasks' time in which garbage was collected, None while no task has taken any."""
        return self.gc_millis / self.run_millis if self.run_millis else None


SUMMED = TaskNumbers.__struct_fields__[3:-1]
"""The fields that are sums over tasks."""


def own_accumulator(name: str | None, value: object) -> tuple[str, float] | None:
    """Return name and value of an accumulator; None for one without a name, or that is no number, as collections."""
    if not name or not isinstance(value, str) or len(value) > _DIGITS:
        return None
    for kind in (int, float):
        with suppress(ValueError):
            if math.isfinite(found := kind(value)):
                return name[:_NAME_LENGTH], found
    return None


def accumulators_of(sums: Mapping[str, float]) -> tuple[Accumulator, ...]:
    """Return sums by their names."""
    return tuple(Accumulator(name, sums[name]) for name in sorted(sums))
