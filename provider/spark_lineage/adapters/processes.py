"""Finds the processes that belong to a launch, and ends them: also a Python driver whose JVM is gone.

A Python driver outlives a JVM that was killed, and is no descendant of spark-submit from then on. All processes of a
launch keep the environment that they were started with.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

LAUNCH_VARIABLE = "SPARK_LINEAGE_LAUNCH"
_POLL_SECONDS = 0.05


def processes_of(launch_id: str, program: Sequence[str] = ()) -> list[psutil.Process]:
    """Return the live processes of this user that were started with ``SPARK_LINEAGE_LAUNCH`` set to the launch's id.

    :param program: gives the driver alone, which runs this file with these arguments
    """
    return [process for process in psutil.process_iter() if _belongs(process, launch_id, program)]


def live_after(launch_id: str, grace_seconds: float, program: Sequence[str] = ()) -> list[psutil.Process]:
    """Return the processes of a launch that live after the grace, also those that others have begun meanwhile."""
    deadline = time.monotonic() + grace_seconds
    # Not psutil's wait, which would take the exit code of spark-submit from the one who started it.
    while (alive := processes_of(launch_id, program)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return alive


def end_processes(launch_id: str, grace_seconds: float, *, program: Sequence[str] = ()) -> int:
    """Ask the processes of a launch to end (SIGTERM), and kill (SIGKILL) those that still live after the grace."""
    processes = processes_of(launch_id, program)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    for process in live_after(launch_id, grace_seconds, program) if processes else ():
        with contextlib.suppress(psutil.Error):
            process.kill()
    return len(processes)


def _belongs(process: psutil.Process, launch_id: str, program: Sequence[str]) -> bool:
    try:
        return (
            process.pid != os.getpid()
            and process.uids().real == os.getuid()
            and process.environ().get(LAUNCH_VARIABLE) == launch_id
            and (not program or _without_directory(process.cmdline()[-len(program) :]) == _without_directory(program))
        )
    except (psutil.Error, OSError):
        # It has ended, or its environment is not ours to read.
        return False


def _without_directory(command: Sequence[str]) -> list[str]:
    """Return the last part of ``python .../job.py arguments``: Spark may have fetched the file to another directory."""
    return [*(Path(file).name for file in command[:1]), *command[1:]]
