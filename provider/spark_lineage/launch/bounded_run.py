"""How much time is left, and calls that are waited for no longer than that; monotonic."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import ClassVar, ParamSpec, TypeVar

# A server, a share or a thread that has not answered by then hangs.
ANSWER_SECONDS = 5.0
# The limit of work that nearly always ends at once.
BRIEF_SECONDS = 1.0
# Airflow kills a task five seconds after asking it to end, and its OpenLineage provider needs some of them. Lineage has
# three: two are reserved for work after the kill command, one for work after reading.
KILLED_SECONDS = 3.0
AFTER_KILLING_SECONDS, AFTER_READING_SECONDS = 2.0, 1.0
_LOOK_SECONDS = 0.1
# Airflow does not kill the process after this error, so that time is not limited.
TIMEOUT = "AirflowTaskTimeout"
# ``is_bounded`` is set in threads of a ``BoundedRun``, whose callers have their own limit.
_this_thread = threading.local()

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


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


class Kill:
    """Whether and why the end of the task was asked for, and the one ``deadline`` of all that is done for its lineage.

    What has ended by itself cannot be killed any more: then nothing ``is_asked``, but there is no more time either.
    ``of_process`` is that of the task in this process, for what Airflow's own listeners call.
    """

    of_process: ClassVar[Kill | None] = None

    def __init__(self) -> None:
        self.why = ""
        self.is_asked = False
        self.deadline = Deadline()

    def request(self, why: str, *, is_too_late: bool = False, is_hurried: bool = True) -> None:
        """Learn that the end is asked for; what is asked again changes nothing.

        :param is_hurried: whether Airflow is going to kill the process: then the time begins
        """
        if not self.why:
            self.why, self.is_asked = why, not is_too_late
        if is_hurried:
            self.deadline.hurry(KILLED_SECONDS)


def cut_off_by(error: BaseException) -> str:
    """Return the type of the exception that has cut a task off, empty for an error; a later error may hide a timeout.

    ``SystemExit`` is an error of the user's code: Airflow raises none in a task.
    """
    if not isinstance(error, (Exception, SystemExit)):
        return type(error).__name__
    hidden = error.__context__
    while hidden is not None and type(hidden).__name__ != TIMEOUT:
        hidden = hidden.__context__
    return TIMEOUT if hidden is not None else ""


class BoundedRun:
    """A call in a thread of its own, which may hang: in a file system, in a process, in a server."""

    def __init__(self, run: Callable[[], object], name: str) -> None:
        self._run = run
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._go, name=name, daemon=True)
        self._is_left = False
        try:
            self._thread.start()
        except RuntimeError:
            # No thread can be started: ``wait`` makes the call.
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
        # The thread may end between the two questions, so its end is looked at before its error.
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
    """A share or a server that may hang: each use of it is waited for no longer than some seconds.

    As long as one use hangs, the next ones fail at once, so that there is no wait for each of them.

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
# A push takes some hundredths of a second; Airflow itself asks again and again where its API server is away.
XCOMS = BoundedPlace("Airflow's API server", 2.0)
