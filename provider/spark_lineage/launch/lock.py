"""Files that processes share: locks that end with a killed process, and lines that are whole and fsynced."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

APPENDING_SECONDS = 5.0
_PAUSE_SECONDS = 0.02
# Descriptors that are held in this process.
_held: set[int] = set()


def within(seconds: float) -> Callable[[], bool]:
    """Return a ``wait`` for :func:`locked` that gives up after some seconds; 0 never waits."""
    end = time.monotonic() + seconds

    def wait() -> bool:
        time.sleep(min(seconds, _PAUSE_SECONDS))
        return time.monotonic() < end

    return wait


@contextmanager
def locked(
    path: Path | str, wait: Callable[[], bool], *, flags: int = 0, mode: int = 0o600, parent: int | None = None
) -> Iterator[int | None]:
    """Hold the lock of a file as long as the block takes.

    :param wait: called each time that another one holds it; returns after a pause whether to try again
    :param flags: of ``os.open``, besides those that open it for reading and writing and make it where it is missing
    :param parent: descriptor of the directory that the path starts from
    :return: the descriptor of the file; None after ``wait`` has given up
    :raises OSError: when there can be no such file
    """
    descriptor = take(path, wait, flags=flags, mode=mode, parent=parent)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            release(descriptor)


def take(
    path: Path | str,
    wait: Callable[[], bool] = lambda: False,
    *,
    flags: int = 0,
    mode: int = 0o600,
    parent: int | None = None,
) -> int | None:
    """Take the lock of a file until ``release`` gets the descriptor that this returns; the rest is as of ``locked``."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | flags, mode, dir_fd=parent)
    _held.add(descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        release(descriptor)
        raise OSError(errno.EINVAL, "this is no regular file", str(path))
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if wait():
                    continue
                release(descriptor)
                return None
            except OSError:
                # A file system without locks: an event that comes twice is better than none, and two at once do no
                # harm.
                return descriptor
            return descriptor
    except BaseException:
        release(descriptor)
        raise


def release(descriptor: int, *, is_handed_over: bool = False) -> None:
    """Close a file, and give up its lock: in a process forked meanwhile too, unless that was to have it."""
    if not is_handed_over:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    _held.discard(descriptor)
    os.close(descriptor)


@contextmanager
def appending(path: Path, mode: int, flags: int = 0) -> Iterator[Callable[[bytes], None]]:
    """Open a file under its own lock, made with ``mode`` where it is missing; yields what appends a line, fsynced.

    A line is JSON: a line end within it becomes a space. A line that cannot be written whole is taken back.

    :raises OSError: when it cannot be opened or written, or another process holds it for 5 s
    """
    with locked(path, within(APPENDING_SECONDS), flags=os.O_APPEND | flags, mode=mode) as descriptor:
        if descriptor is None:
            raise BlockingIOError(errno.EAGAIN, "another process holds it for too long")
        yield lambda line: _append(descriptor, line)


def _append(descriptor: int, line: bytes) -> None:
    # A line end between tokens of JSON is white space.
    line, size = b" ".join(line.splitlines()), os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        # A writer that was killed leaves a torn line, which stays a line of its own.
        line = b"\n" + line
    append_whole(descriptor, line + b"\n", is_synced=True)


def append_whole(descriptor: int, content: bytes, *, is_synced: bool = False) -> None:
    """Append all of some bytes, or nothing.

    :raises OSError: when they cannot be written
    """
    size, left = os.fstat(descriptor).st_size, memoryview(content)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
        if is_synced:
            os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _let_go() -> None:
    """Close in a forked process what it has inherited: it would hold the locks of a parent that was killed."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go)
