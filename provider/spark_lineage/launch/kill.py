"""Keeps whether the task is being killed, and how much of the time that it has then is left."""

from __future__ import annotations

import time

# Airflow kills a task five seconds after it has asked it to end; its provider needs some of them for the last event.
_SECONDS = 3.0


class Kill:
    """Whether, why and when the end of the task was asked for.

    What has ended by itself cannot be killed any more: then nothing ``is_asked``, but there is no more time either.
    """

    def __init__(self) -> None:
        self.why = ""
        self.is_asked = False
        self._deadline: float | None = None

    def ask(self, why: str, *, is_too_late: bool = False, is_hurried: bool = True) -> None:
        """Learn that the end is asked for; what is asked again changes nothing.

        :param is_hurried: whether Airflow is going to kill the process: then the time begins
        """
        if not self.why:
            self.why, self.is_asked = why, not is_too_late
        if is_hurried and self._deadline is None:
            self._deadline = time.monotonic() + _SECONDS

    def seconds(self, at_most: float, *, leaving: float = 0.0) -> float:
        """Return how long something may take now: ``at_most``, or what is left of the time, if that is less.

        :param leaving: seconds of the time that are for what comes after that
        """
        if self._deadline is None:
            return at_most
        return max(0.0, min(at_most, self._deadline - leaving - time.monotonic()))
