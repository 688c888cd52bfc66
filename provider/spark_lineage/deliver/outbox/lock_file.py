"""Lock files: one process or thread at a time, and whoever is killed lets go."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Descriptors that are held in this process.
_held: set[int] = set()


@contextmanager
def locked(path: Path, wait: Callable[[], bool]) -> Iterator[bool]:
    """Hold the lock of a file, which is made where it is missing, as long as the block takes.

    :param wait: called each time that another one holds it; returns after a pause whether to try again
    :return: whether it is held; False after ``wait`` has given up
    :raises OSError: when there can be no such file
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    _held.add(descriptor)
    try:
        while not (is_held := _lock(descriptor)) and wait():
            pass
        yield is_held
    finally:
        # A process forked meanwhile has the same lock: it is given up for both.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        _held.discard(descriptor)
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _let_go() -> None:
    """Close in a forked process what it has inherited: it would hold the locks of a parent that was killed."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go)
