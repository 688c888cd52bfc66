"""The pauses of one destination: how long nothing is sent to its backend, or of one run."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from spark_lineage.launch.directory import read_small, replace_file
from spark_lineage.secrets.redaction import redact

BACKEND = ""
"""The key of the backend; all other keys are ids of runs."""
_MINUTE = 60.0
# The pauses of a run whose event the backend answers with an error, while it accepts others.
_OF_RUN = (_MINUTE, 5 * _MINUTE, 30 * _MINUTE, 60 * _MINUTE)
_FIRST_SECONDS, _LONGEST_SECONDS = 2.0, 5 * _MINUTE
# A backend that asks for a day does not get it.
_LONGEST_OF_ALL = 60 * _MINUTE
# A DAG file may seed Python's own generator, and then all workers return at once.
_chance = random.SystemRandom()


class Pause(Struct, frozen=True):
    """A pause that began at ``began`` (seconds since the start of the host) after so many failures in a row."""

    failures: int
    began: float
    seconds: float
    why: str

    @property
    def seconds_left(self) -> float:
        """The rest of the pause; 0 after a restart of the host, when its clock is behind the beginning."""
        passed = _now() - self.began
        return max(0.0, min(self.seconds, _LONGEST_OF_ALL) - passed) if passed >= 0 else 0.0


class Pauses:
    """The pauses of one destination.

    :param path: of their file, which is made for the first pause; a file that cannot be read counts as empty
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.all: dict[str, Pause] = {}
        """The pauses by their keys, those included that are over."""
        with suppress(OSError, msgspec.MsgspecError, RecursionError):
            self.all = msgspec.json.decode(read_small(path), type=dict[str, Pause])

    def seconds_left(self, key: str) -> float:
        """Return how long nothing is sent; 0 without a pause."""
        return pause.seconds_left if (pause := self.all.get(key)) is not None else 0.0

    def why(self, key: str) -> str:
        """Return what the backend has answered; empty without a pause."""
        return pause.why if (pause := self.all.get(key)) is not None else ""

    def failed(self, key: str, why: str, *, retry_after: float | None = None, took_seconds: float = 0.0) -> float:
        """Begin a pause that is longer than the one before, and return its seconds.

        :param retry_after: seconds that the backend asks for
        :param took_seconds: how long the answer was awaited: a slow backend may have accepted the event after all
        """
        failures = 1 + (self.all[key].failures if key in self.all else 0)
        if key == BACKEND:
            longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures - 1, 16))
            seconds = _chance.uniform(longest / 2, longest)
        else:
            seconds = _OF_RUN[min(failures, len(_OF_RUN)) - 1]
        seconds = min(max(seconds, took_seconds, retry_after or 0.0), _LONGEST_OF_ALL)
        self.all[key] = Pause(failures, _now(), seconds, redact(why))
        self._save()
        return seconds

    def taken(self, run_id: str) -> None:
        """End the pause of a run of which the backend has accepted an event; after an outage, those of all runs."""
        if BACKEND in self.all:
            self.end()
        elif self.all.pop(run_id, None) is not None:
            self._save()

    def end(self) -> None:
        """End all pauses, because the backend works again or a user sends what waits."""
        self.all.clear()
        self._save()

    def _save(self) -> None:
        # A pause that is not on the disk ends too soon, and does no other harm.
        with suppress(OSError):
            replace_file(self._path, msgspec.json.encode(self.all), 0o600)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
