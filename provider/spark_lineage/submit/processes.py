"""Finds the processes that belong to a launch, and ends them: also a Python driver whose JVM is gone.

A Python driver outlives a JVM that was killed, and is no descendant of spark-submit from then on. What all processes of
a launch keep is the environment that they were started with.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import psutil

LAUNCH_VARIABLE = "SPARK_LINEAGE_LAUNCH"
_POLL_SECONDS = 0.05


def processes_of(launch_id: str, session_id: int | None = None) -> list[psutil.Process]:
    """Give the live processes of this user that were started with ``SPARK_LINEAGE_LAUNCH`` set to the launch's id.

    :param session_id: gives those of one session alone (``getsid``)
    """
    return [
        process
        for process in _others()
        if _launch_of(process) == launch_id and session_id in (None, _session_of(process))
    ]


def end_processes(launch_id: str, grace_seconds: float, *, session_id: int | None = None) -> int:
    """Ask the processes of a launch to end (SIGTERM), and kill (SIGKILL) those that still live after the grace.

    :param session_id: ends those of one session alone (``getsid``)
    :return: how many there were
    """
    processes = processes_of(launch_id, session_id)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + grace_seconds
    # Not psutil's wait, which would take the exit code of spark-submit from the one who started it.
    while processes and (alive := processes_of(launch_id, session_id)):
        if time.monotonic() > deadline:
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            break
        time.sleep(_POLL_SECONDS)
    return len(processes)


def _others() -> Iterator[psutil.Process]:
    user = os.getuid()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.uids().real == user:
                yield process


def _session_of(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except OSError:
        return None


def _launch_of(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get(LAUNCH_VARIABLE)
    except (psutil.Error, OSError):
        # It has just ended, or its environment is not ours to read.
        return None
