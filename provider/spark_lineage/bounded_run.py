"""Runs what may take long in a thread of its own, so that whoever wants it need not wait for its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LOOK_SECONDS = 0.1


def counting_down(seconds: float) -> Callable[[], float]:
    """Give what tells how much is left of some seconds, which begin now; below zero when they are over."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


class BoundedRun:
    """Something that has begun to run, and may hang: in a file system, in a process, in a server."""

    def __init__(self, run: Callable[[], object], name: str) -> None:
        self._run = run
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._go, name=name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # There can be no more threads.
            self._go()

    def wait(self, remaining: Callable[[], float]) -> bool:
        """Wait for the end as long as there is time, and give whether it has come.

        :param remaining: gives the seconds that are left; it may be less from one moment to the next
        :raises BaseException: what it has raised, once
        """
        while self._thread.is_alive() and (seconds := remaining()) > 0:
            self._thread.join(min(seconds, _LOOK_SECONDS))
        # Asked before its error is: it may end in between.
        has_ended = not self._thread.is_alive()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return has_ended

    def _go(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._error = error
