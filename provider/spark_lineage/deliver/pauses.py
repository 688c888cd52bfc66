"""How long nothing is sent to a backend, or of one run: on disk, in the time since the host was started."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from spark_lineage.launch.directory import read_small, replace
from spark_lineage.secrets.redaction import redact

BACKEND = ""
"""The key of the backend; all others are ids of runs."""
_MINUTE = 60.0
# Of a run whose event the backend answers with an error, while it takes others.
_OF_RUN = (_MINUTE, 5 * _MINUTE, 30 * _MINUTE, 60 * _MINUTE)
_FIRST_SECONDS, _LONGEST_SECONDS = 2.0, 5 * _MINUTE
# A backend that asks for a day does not get it.
_LONGEST_OF_ALL = 60 * _MINUTE
# A DAG file may seed that of Python, and then all workers come back at once.
_chance = random.SystemRandom()


class Pause(Struct, frozen=True):
    """A pause that began at ``began`` (seconds since the start of the host) after so many failures in a row."""

    failures: int
    began: float
    seconds: float
    why: str

    @property
    def seconds_left(self) -> float:
        """How long it lasts; 0 where the host was started anew, so that its clock is behind the beginning."""
        passed = _now() - self.began
        return max(0.0, min(self.seconds, _LONGEST_OF_ALL) - passed) if passed >= 0 else 0.0


class Pauses:
    """The pauses of one destination.

    :param path: of the file, which is made when there is something to keep; one that cannot be read counts as empty
    :param scale: by which all pauses of runs are multiplied
    """

    def __init__(self, path: Path, *, scale: float = 1.0) -> None:
        self._path = path
        self._scale = scale
        self._pauses: dict[str, Pause] = {}
        with suppress(OSError, msgspec.MsgspecError, RecursionError):
            self._pauses = msgspec.json.decode(read_small(path), type=dict[str, Pause])

    def seconds_left(self, key: str) -> float:
        """Return how long nothing is sent; 0 where it may be."""
        pause = self._pauses.get(key)
        return pause.seconds_left if pause is not None else 0.0

    def why(self, key: str) -> str:
        """Return what the backend has answered; empty without a pause."""
        pause = self._pauses.get(key)
        return pause.why if pause is not None else ""

    @property
    def all(self) -> Mapping[str, Pause]:
        """The pauses by their keys, those included that are over."""
        return self._pauses

    def failed(self, key: str, why: str, *, retry_after: float | None = None, took_seconds: float = 0.0) -> float:
        """Begin a pause that is longer than the one before, and return its seconds.

        :param retry_after: seconds that the backend asks for
        :param took_seconds: how long the answer was awaited: a slow backend may have taken the event after all
        """
        failures = (self._pauses[key].failures if key in self._pauses else 0) + 1
        if key == BACKEND:
            longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures - 1, 16))
            seconds = _chance.uniform(longest / 2, longest)
        else:
            seconds = _OF_RUN[min(failures, len(_OF_RUN)) - 1] * self._scale
        seconds = min(max(seconds, took_seconds, retry_after or 0.0), _LONGEST_OF_ALL)
        self._pauses[key] = Pause(failures, _now(), seconds, redact(why))
        self._save()
        return seconds

    def taken(self, run_id: str) -> None:
        """Learn that the backend has taken an event of a run; after an outage all runs may go on."""
        ended = [*self._pauses] if BACKEND in self._pauses else [run_id] if run_id in self._pauses else []
        for key in ended:
            del self._pauses[key]
        if ended:
            self._save()

    def end(self) -> None:
        """End all pauses: a user says that the backend was mended."""
        self._pauses.clear()
        self._save()

    def _save(self) -> None:
        # What cannot be kept is tried again sooner than it should be.
        with suppress(OSError):
            replace(self._path, msgspec.json.encode(self._pauses), 0o600)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
