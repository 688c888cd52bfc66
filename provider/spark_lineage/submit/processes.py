"""Finds the processes that belong to a launch, and ends them: also a Python driver whose JVM is gone.

A Python driver outlives a JVM that was killed, and is no descendant of spark-submit from then on. What all processes of
a launch keep is the environment that they were started with.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

LAUNCH_VARIABLE = "SPARK_LINEAGE_LAUNCH"
_POLL_SECONDS = 0.05


def processes_of(launch_id: str, program: Sequence[str] = ()) -> list[psutil.Process]:
    """Return the live processes of this user that were started with ``SPARK_LINEAGE_LAUNCH`` set to the launch's id.

    :param program: gives the driver alone, which runs this file with these arguments
    """
    return [process for process in _others() if _launch_of(process) == launch_id and _runs(process, program)]


def end_processes(launch_id: str, grace_seconds: float, *, program: Sequence[str] = ()) -> int:
    """Ask the processes of a launch to end (SIGTERM), and kill (SIGKILL) those that still live after the grace.

    :param program: ends the driver alone, which runs this file with these arguments
    :return: how many there were
    """
    processes = processes_of(launch_id, program)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + grace_seconds
    # Not psutil's wait, which would take the exit code of spark-submit from the one who started it.
    while processes and (alive := processes_of(launch_id, program)):
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


def _runs(process: psutil.Process, program: Sequence[str]) -> bool:
    """Whether a process is ``python .../job.py arguments``: Spark may have fetched the file into another directory."""
    if not program:
        return True
    try:
        command = process.cmdline()[-len(program) :]
    except (psutil.Error, OSError):
        return False
    return len(command) == len(program) and (Path(command[0]).name, *command[1:]) == (
        Path(program[0]).name,
        *program[1:],
    )


def _launch_of(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get(LAUNCH_VARIABLE)
    except (psutil.Error, OSError):
        # It has just ended, or its environment is not ours to read.
        return None
