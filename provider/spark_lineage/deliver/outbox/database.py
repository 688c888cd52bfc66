"""The SQLite file of an outbox: transactions that survive forks, and files that are broken or missing."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from spark_lineage.deliver.outbox.kept_event import OutboxError
from spark_lineage.deliver.outbox.schema import (
    BUSY_SECONDS,
    Trouble,
    is_corrupt,
    kind_of,
    open_file,
    rescue,
    set_aside,
)
from spark_lineage.launch.directory import create_private
from spark_lineage.launch.lock import locked, within

Result = TypeVar("Result")

FILE = "outbox.db"
_OPENING_LOCK = "outbox.lock"
_ATTEMPTS = 3
# By SQLite's result code.
_ADVICE = {
    5: "; other processes are writing for too long: is the disk slow, or one of them stopped?",
    8: "; may this user write to it?",
    10: "; is the disk full, or broken?",
    13: "; free some space there: what it holds is kept",
    14: "; may this user write to it?",
}


class Database:
    """One file, opened when it is first needed; one transaction at a time in a process, from any thread.

    A connection of SQLite must not be in two processes: it is closed before a fork, and opened again when it is needed.
    Every method raises ``OutboxError``, whose text says what to do, when the file cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / FILE
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        _databases.add(self)

    def write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Change something in a transaction, all of it or nothing; it is on the disk when this returns.

        :param work: may be called again, when the file was replaced meanwhile
        """
        return self._run(work, "FULL")

    def change(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Run SQL with its values in a transaction that is not synced: a machine that loses its power may forget it."""
        self._run(lambda connection: [connection.execute(*each) for each in statements], "NORMAL")

    def rows(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        return self._run(lambda connection: connection.execute(query, values).fetchall())

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with _lock:
            self._close()

    def leave_to_parent(self) -> None:
        """Forget the connection of the process that this one was forked from: to close it would write to its file."""
        _not_ours.append(self._connection)
        self._connection = self._file = None

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        connection, self._connection, self._file = self._connection, None, None
        if connection is not None:
            connection.close()

    def _run(
        self, work: Callable[[sqlite3.Connection], Result], synchronous: Literal["FULL", "NORMAL"] | None = None
    ) -> Result:
        """Do something in one transaction, which only reads where nothing is said of ``synchronous``."""
        # A fork may replace it meanwhile.
        lock = _lock
        if not lock.acquire(timeout=2 * BUSY_SECONDS):
            raise OutboxError(f"the outbox in {self._directory} is in use by another thread for too long")
        try:
            for _ in range(_ATTEMPTS):
                try:
                    connection = self._opened()
                    if synchronous:
                        connection.execute(f"PRAGMA synchronous = {synchronous}")
                    with connection:
                        connection.execute("BEGIN IMMEDIATE" if synchronous else "BEGIN")
                        result = work(connection)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    broken = self._file
                    self._close()
                    if not is_corrupt(error, self._path):
                        text = f"the outbox in {self._directory} cannot be used: {error}"
                        raise OutboxError(text + _ADVICE.get(kind_of(error), "")) from error
                    self._replace(broken, error)
                    continue
                if not synchronous or self._is_in_place():
                    return result
                # Another process has set the file aside before this was written to it.
                self._close()
        finally:
            lock.release()
        raise OutboxError(f"the outbox in {self._directory} breaks again and again; is its disk all right?")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None or not self._is_in_place():
            self._close()
            with _alone(self._directory):
                # Also before, for where it is broken.
                self._file = _identity(self._path)
                self._connection = open_file(self._path)
                self._file = _identity(self._path)
        return self._connection

    def _replace(self, broken: tuple[int, int] | None, error: Trouble) -> None:
        with _alone(self._directory):
            # Unless another process has done so already.
            if broken == _identity(self._path):
                aside = set_aside(self._path, error)
                with closing(open_file(self._path)) as connection:
                    rescue(aside, connection)

    def _is_in_place(self) -> bool:
        return self._file is not None and self._file == _identity(self._path)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other processes from opening the file; makes the directory (0700) where it is missing."""
    try:
        if not directory.is_dir():
            create_private(directory)
        with locked(directory / _OPENING_LOCK, within(BUSY_SECONDS)) as descriptor:
            if descriptor is None:
                raise OutboxError(f"the outbox in {directory} is being opened by another process for too long")
            yield
    except OSError as error:
        raise OutboxError(f"the outbox in {directory} cannot be opened: {error}") from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


# Held during each transaction of this process, and while it forks.
_lock = threading.RLock()
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_FORK_SECONDS = 1.0
_forking = threading.local()
_not_ours: list[sqlite3.Connection | None] = []


def _before_fork() -> None:
    # Not for ever: the disk of the thread that holds it may hang.
    _forking.has_lock = _lock.acquire(timeout=_FORK_SECONDS)
    if _forking.has_lock:
        for database in list(_databases):
            database.close()


def _after_fork() -> None:
    if _forking.has_lock:
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603 - the thread that holds it is not in this process
    if _forking.has_lock:
        _lock.release()
        return
    _lock = threading.RLock()
    for database in list(_databases):
        database.leave_to_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
