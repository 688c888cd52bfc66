"""The courier: a process that sends what is due of one spool, outlives the task that called it, and ends.

It imports no Airflow. There is one for a spool: it has the lock of the spool (``Spool.take_turn``), which ``call``
hands over. What it is given holds secrets, and comes through a pipe.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from spark_lineage.deliver.drain import Drain
from spark_lineage.deliver.pauses import BACKEND
from spark_lineage.deliver.sender import Sender, sender_of
from spark_lineage.deliver.spool import Outcome, Spool
from spark_lineage.launch.lock import release
from spark_lineage.secrets.registered_secrets import remember_texts

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
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            pass_fds=[lock],
            start_new_session=True,
            cwd="/",
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
        found = {name: spool.outcome(name) for name in names}
        left = [name for name, outcome in found.items() if outcome == "waiting"]
        if not left or time.monotonic() >= end or spool.are_paused(left):
            return found
        time.sleep(_POLL_SECONDS)


def main(given: Mapping[str, Any]) -> None:
    """Send, until nothing has been due for two seconds."""
    config = dict(given["config"])
    os.environ.update(config.pop("environment", {}))
    remember_texts(given["secrets"])
    spool, lock = Spool(Path(given["directory"])), given["lock"]
    try:
        sender = sender_of(config)
        _send(spool, sender, lock)
        sender.close()
    except Exception as error:
        # Nobody sees what this process prints: `outbox list` shows it.
        spool.pauses.failed(BACKEND, f"nothing can be sent: {error or type(error).__name__}")


def _send(spool: Spool, sender: Sender, lock: int) -> None:
    drain = Drain(spool, sender, lock, _reset_watchdog)
    last = time.monotonic()
    while True:
        before = drain.sent
        drain.run()
        if drain.sent > before:
            last = time.monotonic()
        if time.monotonic() - last > _LINGER_SECONDS or not spool.has_turn(lock):
            # What was put before this is seen once more: its task has found the lock taken.
            release(lock)
            if not drain.is_due or (again := spool.take_turn()) is None:
                return
            drain, last = Drain(spool, sender, again, _reset_watchdog), time.monotonic()
            lock = again
        time.sleep(_LOOK_SECONDS)


def _reset_watchdog() -> bool:
    faulthandler.dump_traceback_later(_WATCHDOG_SECONDS, exit=True)
    return False
