"""Runs what may take long in a thread of its own, so that whoever wants it need not wait for its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from spark_lineage.launch.deadline import ANSWER_SECONDS, Deadline

_LOOK_SECONDS = 0.1
# Set where whoever waits for this thread waits no longer than it wants anyway.
_this_thread = threading.local()

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class BoundedRun:
    """Something that has begun to run, and may hang: in a file system, in a process, in a server."""

    def __init__(self, run: Callable[[], object], name: str) -> None:
        self._run = run
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._go, name=name, daemon=True)
        self._is_left = False
        try:
            self._thread.start()
        except RuntimeError:
            # There can be no more threads: whoever waits for it runs it.
            self._is_left = True

    def wait(self, time: Deadline | float) -> bool:
        """Wait for the end until a deadline, or for some seconds, and return whether it has come.

        :raises BaseException: what it has raised, once
        """
        if self._is_left:
            self._is_left = False
            self._go()
        deadline = time if isinstance(time, Deadline) else Deadline(time)
        while self._thread.is_alive() and (seconds := deadline.seconds_left):
            self._thread.join(min(seconds, _LOOK_SECONDS))
        # Asked before its error is: it may end in between.
        has_ended = not self._thread.is_alive()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return has_ended

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def _go(self) -> None:
        _this_thread.is_bounded = threading.current_thread() is self._thread
        try:
            self._run()
        except BaseException as error:
            self._error = error


class BoundedPlace:
    """Files that may lie on a share that hangs: what uses them is waited for no longer than some seconds.

    As long as one use hangs, the next ones fail at once, so that nobody waits for each of them.

    :param name: for errors
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._hanging: BoundedRun | None = None

    def bounded(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        """Bound every call of a function, as ``use`` does."""

        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            return self.use(lambda: function(*args, **kwargs))

        return call

    def use(self, action: Callable[[], Result]) -> Result:
        """Return what an action gives.

        :raises TimeoutError: when there was no time for it, which may still be done later
        :raises Exception: what it raises
        """
        if getattr(_this_thread, "is_bounded", False):
            return action()
        if not self.seconds_left:
            raise TimeoutError(f"{self._name} hangs")
        results: list[Result] = []
        run = BoundedRun(lambda: results.append(action()), "spark-lineage-files")
        if not run.wait(self._seconds):
            self.hangs(run)
            raise TimeoutError(f"{self._name} has not answered within {self._seconds:g} s")
        return results[0]

    @property
    def seconds_left(self) -> float:
        """How long one more use may take: nothing while another one hangs."""
        return 0.0 if self._hanging is not None and self._hanging.is_running else self._seconds

    def hangs(self, run: BoundedRun) -> None:
        """Learn that something that uses it hangs."""
        self._hanging = run


LINEAGE_FILES = BoundedPlace("the lineage directory", ANSWER_SECONDS)
OUTBOX_FILES = BoundedPlace("the outbox", ANSWER_SECONDS)
