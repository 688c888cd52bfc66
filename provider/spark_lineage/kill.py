"""Keeps whether the task is being killed, and how much of the time that it has then is left."""

from __future__ import annotations

import time

# Airflow kills a task five seconds after it has asked it to end; its provider needs some of them for the last event.
_SECONDS = 3.0


class Kill:
    """Whether, why and when the end of the task was asked for."""

    def __init__(self) -> None:
        self.why = ""
        self._deadline: float | None = None

    def ask(self, why: str) -> None:
        """Begin the time; what is asked again changes nothing."""
        if self._deadline is None:
            self.why, self._deadline = why, time.monotonic() + _SECONDS

    @property
    def is_asked(self) -> bool:
        """Whether the task is being killed."""
        return self._deadline is not None

    def seconds(self, at_most: float) -> float:
        """Give how long something may take now: ``at_most``, or what is left of the time, if that is less."""
        if self._deadline is None:
            return at_most
        return max(0.0, min(at_most, self._deadline - time.monotonic()))
