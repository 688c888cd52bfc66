"""Keeps which functions of the package a task enters, in every thread and process that it starts.

All of them append to one file. A Python process that the task starts begins with ``traced_processes/sitecustomize.py``.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

VARIABLE = "SPARK_LINEAGE_ENTERED"
_PROCESSES = Path(__file__).with_name("traced_processes")
# What a line is, besides the name of a module.
_BEGUN, _PROCESS, _THREAD = "begun", "process", "thread"
_LIMIT_SECONDS = 90
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.exec"}


@dataclass(frozen=True)
class Entered:
    """What one task has entered and started."""

    functions: frozenset[tuple[str, str]]
    """Module and name of each function with a ``def``; no lambda, comprehension or generated method is one."""
    thread_starts: int

    @property
    def modules(self) -> frozenset[str]:
        """Return the modules of the functions."""
        return frozenset(module for module, _ in self.functions)


def environment(file: Path, roots: Iterable[str]) -> dict[str, str]:
    """Return the variables that have the Python processes of a task traced into a file; the package is in the roots."""
    return {VARIABLE: str(file), "PYTHONPATH": os.pathsep.join([str(_PROCESSES), str(_PROCESSES.parent), *roots])}


def entered(file: Path) -> Entered:
    """Return what a file holds, when all processes of the task have ended.

    :raises ValueError: where a Python process was started without being traced
    """
    lines = _lines(file)
    begun = [int(name) for kind, name in lines if kind == _BEGUN]
    started = [name for kind, name in lines if kind == _PROCESS]
    if len(begun) != 1 + len(started):
        raise ValueError(f"Not all of these processes are traced: {started}")
    for pid in begun[1:]:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(_LIMIT_SECONDS)
    lines = _lines(file)
    functions = frozenset((kind, name) for kind, name in lines if kind not in {_BEGUN, _PROCESS, _THREAD})
    return Entered(functions, sum(kind == _THREAD for kind, _ in lines))


def trace(file: Path) -> None:
    """Trace this process and its forks from now on."""
    seen: set[tuple[str, str]] = set()
    stream = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def keep(kind: str, name: str) -> None:
        os.write(stream, f"{kind}\t{name}\n".encode())

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if code is threading.Thread.start.__code__:
            keep(_THREAD, "")
        elif module.startswith("spark_lineage.") and (module, code.co_qualname) not in seen:
            seen.add((module, code.co_qualname))
            if code.co_flags & inspect.CO_OPTIMIZED and "<" not in (code.co_name[0], code.co_filename[0]):
                keep(module, code.co_qualname)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS and sys.getprofile() is enter and (argv := arguments[1]) and argv[0] == sys.executable:
            # A program may be an argument of several lines.
            keep(_PROCESS, " ".join(" ".join(map(str, argv)).split()))

    keep(_BEGUN, str(os.getpid()))
    sys.addaudithook(audit)
    threading.setprofile(enter)
    sys.setprofile(enter)


def _lines(file: Path) -> list[tuple[str, str]]:
    return [(kind, name) for kind, _, name in (line.partition("\t") for line in file.read_text().splitlines())]
