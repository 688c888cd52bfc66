"""The courier: a process that sends what is due of one spool, in order, outlives the task that called it, and ends.

It imports no Airflow. There is one for a spool: it has the lock of the spool (``Spool.take_turn``), which ``call``
hands over. Its configuration holds secrets, and comes through a pipe.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spark_lineage.deliver.outgoing import Outgoing, SpoolError
from spark_lineage.deliver.pauses import BACKEND
from spark_lineage.deliver.sender import Later, Refused, Sender, sender_of
from spark_lineage.deliver.spool import Entry, Outcome, Spool
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.lock import release, within
from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import remember_texts

_log = Log(__name__)

# After so many failed runs in a row, or so long, the backend is the reason, and not an event.
_RUNS_IN_VAIN, _SECONDS_IN_VAIN = 10, 30.0


class Courier:
    """Sends by one sender; the caller has the turn (``Spool.take_turn``).

    An event that the backend answers with an error steps aside with its run: the order within the run holds, others go
    on.

    :param lock: of the turn
    :param is_over: called before each event; whether nothing more may be sent
    """

    def __init__(self, spool: Spool, sender: Sender, lock: int, is_over: Callable[[], bool]) -> None:
        self.sent = self.refused = 0
        self._lock = lock
        self._spool = spool
        self._sender = sender
        self._pauses = spool.pauses
        self._is_over = is_over
        self._failed_runs = 0
        self._since = time.monotonic()

    def run(self) -> None:
        """Send until nothing is due; what was put meanwhile is sent as well."""
        with suppress(SpoolError):
            self._spool.count(is_due=False)
        if (entry := self._spool.interrupted(self._lock)) is not None:
            # The backend may have accepted it. It does not get it with each process that is killed while it waits.
            self._pauses.failed(entry.run_id, "the process that sent it was killed before the backend answered")
        try:
            while self._send_waiting():
                pass
        finally:
            self._spool.begin(self._lock, None)

    @property
    def is_due(self) -> bool:
        """Whether something waits that may be sent now."""
        return not self._pauses.seconds_left(BACKEND) and bool(self._spool.sendable(self._is_held, 1))

    def _is_held(self, entry: Entry) -> bool:
        return self._pauses.seconds_left(entry.run_id) > 0

    def _send_waiting(self) -> bool:
        """Send what is due now, and return whether there may be more."""
        has_sent, held = False, set[str]()
        for entry in self._spool.sendable(self._is_held):
            if self._is_over() or not self._spool.has_turn(self._lock) or self._pauses.seconds_left(BACKEND):
                return False
            if entry.run_id not in held and not self._spool.is_being_put(entry) and self._send(entry):
                has_sent = True
            else:
                held.add(entry.run_id)
        return has_sent

    def _send(self, entry: Entry) -> bool:
        """Send one event; return whether the next one of its run may be sent."""
        began = time.monotonic()
        try:
            if (body := self._spool.read(entry)) is not None:
                self._spool.begin(self._lock, entry)
                self._sender.send(Outgoing.of(body))
        except SpoolError as error:
            return self._refuse(entry, f"it cannot be sent: {error}")
        except Refused as error:
            return self._refuse(entry, str(error))
        except Later as error:
            self._put_off(entry, error, time.monotonic() - began)
            return False
        try:
            self._spool.remove(entry)
        except SpoolError as error:
            # Else each task would send it again.
            self._pauses.failed(BACKEND, f"a sent event cannot be removed: {error}")
            return False
        self.sent += 1
        self._failed_runs, self._since = 0, time.monotonic()
        self._pauses.taken(entry.run_id)
        return True

    def _refuse(self, entry: Entry, why: str) -> bool:
        try:
            self._spool.refuse(entry, why)
        except SpoolError as error:
            self._pauses.failed(entry.run_id, f"{why}; and it cannot be set aside: {error}")
            return False
        self.refused += 1
        _log.warning("A %s of run %s is refused: %s", entry.event_type or "event", entry.run_id, why)
        return True

    def _put_off(self, entry: Entry, error: Later, took_seconds: float) -> None:
        keys = [] if error.is_away else [entry.run_id]
        self._failed_runs += len(keys)
        is_backend = self._failed_runs >= _RUNS_IN_VAIN or time.monotonic() - self._since >= _SECONDS_IN_VAIN
        if error.is_away or is_backend:
            keys.append(BACKEND)
        for key in keys:
            self._pauses.failed(key, str(error), retry_after=error.retry_after, took_seconds=took_seconds)


@dataclass(frozen=True)
class Delivered:
    """The outcome of a ``drain``: how many events a backend accepted or refused, and how many wait."""

    sent: int = 0
    waiting: int = 0
    refused: int = 0


def drain(spool: Spool, sender: Sender, deadline: Deadline, *, is_wanted: bool = True) -> Delivered:
    """Send what waits within a time, in this process; the courier of the spool ends its turn first.

    :param is_wanted: whether a user wants it sent whatever pauses
    """
    if (lock := spool.take_turn(within(deadline.seconds_left))) is None:
        return Delivered(waiting=len(spool.waiting()))
    try:
        if is_wanted:
            spool.pauses.end()
            spool.begin(lock, None)
        courier = Courier(spool, sender, lock, lambda: not deadline.seconds_left)
        courier.run()
        return Delivered(courier.sent, len(spool.waiting()), courier.refused)
    finally:
        release(lock)
        sender.close()


# A grandchild in a session of its own: Airflow 3 kills the process group of a task, Airflow 2 its children. The paths
# of the modules come with the rest, so that looking for them costs no time.
_START = (
    "import os, sys\n"
    "os.fork() and os._exit(0)\n"
    "import json\n"
    "given = json.load(sys.stdin)\n"
    "sys.path[:] = given['paths']\n"
    # httpx imports its command line, and that a library for terminals, where it finds this one.
    "sys.modules['click'] = None\n"
    "import httpx\n"
    "del sys.modules['click']\n"
    "from spark_lineage.deliver import courier\n"
    "courier.main(given)\n"
)
# Once nothing is due, it waits so long for what comes next; a start of Python costs more.
_LINGER_SECONDS, _LOOK_SECONDS = 2.0, 0.1
# A send that takes longer hangs.
_WATCHDOG_SECONDS = 300.0
_POLL_SECONDS = 0.02


def call(spool: Spool, config: Mapping[str, Any], secrets: Sequence[str] = ()) -> bool:
    """Have a courier send what waits, unless there is one, or the backend pauses.

    :param config: of the transport; ``environment`` in it are variables that its transport reads
    :param secrets: what must not be in its notes
    :return: whether a courier can be had; False where no process may be started
    :raises SpoolError: when the spool cannot be used
    """
    if spool.pauses.seconds_left(BACKEND) or (lock := spool.take_turn()) is None:
        return True
    given = {"directory": str(spool.directory), "lock": lock, "config": config, "secrets": secrets, "paths": sys.path}
    # A program that was started by another name, as a frozen one, is no Python.
    command = [sys.executable or "python3", "-P", "-c", _START]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=null, stderr=null, pass_fds=[lock], start_new_session=True, cwd="/"
        )
        process.communicate(msgspec.json.encode(given))
    except OSError:
        return False
    finally:
        # The courier has the same lock, which this does not give up.
        release(lock, is_handed_over=True)
    return process.returncode == 0


def wait(spool: Spool, names: Sequence[str], seconds: float) -> Mapping[str, Outcome]:
    """Wait until nothing of some events is waiting, or they are paused, and return what became of each.

    :raises SpoolError: when the spool cannot be used
    """
    end = time.monotonic() + seconds
    while True:
        outcomes = {name: spool.outcome(name) for name in names}
        left = [name for name, outcome in outcomes.items() if outcome == "waiting"]
        if not left or time.monotonic() >= end or spool.are_paused(left):
            return outcomes
        time.sleep(_POLL_SECONDS)


def main(given: Mapping[str, Any]) -> None:
    """Send, until nothing has been due for two seconds."""
    config = dict(given["config"])
    os.environ.update(config.pop("environment", {}))
    remember_texts(given["secrets"])
    spool, lock = Spool(Path(given["directory"])), given["lock"]
    try:
        with closing(sender_of(config)) as sender:
            while lock is not None:
                courier = Courier(spool, sender, lock, _reset_watchdog)
                _linger(courier, spool, lock)
                release(lock)
                # An event that was put before this is looked for once more: its task has found the lock taken.
                lock = spool.take_turn() if courier.is_due else None
    except Exception as error:
        # Nobody sees what this process prints: `outbox list` shows it.
        spool.pauses.failed(BACKEND, f"nothing can be sent: {error or type(error).__name__}")


def _linger(courier: Courier, spool: Spool, lock: int) -> None:
    sent, end = 0, time.monotonic() + _LINGER_SECONDS
    while time.monotonic() <= end and spool.has_turn(lock):
        courier.run()
        if courier.sent > sent:
            sent, end = courier.sent, time.monotonic() + _LINGER_SECONDS
        time.sleep(_LOOK_SECONDS)


def _reset_watchdog() -> bool:
    faulthandler.dump_traceback_later(_WATCHDOG_SECONDS, exit=True)
    return False
