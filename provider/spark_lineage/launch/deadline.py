"""How much time is left, from wherever it is asked; monotonic."""

from __future__ import annotations

import math
import time

# Who has not answered by then hangs: a server, a share, a thread of somebody else's.
ANSWER_SECONDS = 5.0
# For what is nearly always over at once.
BRIEF_SECONDS = 1.0
# Airflow kills the process of a task five seconds after it has asked it to end, and its OpenLineage provider needs some
# of them. Of these three, so many are for what comes after the command that kills the job, and after reading.
KILLED_SECONDS = 3.0
AFTER_KILLING_SECONDS, AFTER_READING_SECONDS = 2.0, 1.0


class Deadline:
    """When something has to be over. It may move closer later on, and what is ``within`` it follows.

    :param seconds: from now on; by default there is no end
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.monotonic() + seconds
        self._whole: Deadline | None = None
        self._leaving = self._at_least = 0.0

    def within(self, seconds: float, *, leaving: float = 0.0, at_least: float = 0.0) -> Deadline:
        """Return the deadline of a part, which begins now.

        :param seconds: how long it may take, if the whole has as much time
        :param leaving: seconds of the whole that are for what comes after the part
        :param at_least: how long it may take in any case
        """
        part = Deadline(seconds)
        part._whole, part._leaving, part._at_least = self, leaving, time.monotonic() + at_least
        return part

    def hurry(self, seconds: float) -> None:
        """Move the end closer: this many seconds from now on, unless less is left anyway."""
        self._end = min(self._end, time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        """How many seconds are left, 0 when it is over."""
        now = time.monotonic()
        left = self._end - now
        if self._whole is not None:
            left = max(min(left, self._whole.seconds_left - self._leaving), self._at_least - now)
        return max(0.0, left)
