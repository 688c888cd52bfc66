"""The SQLite file of an outbox: transactions that survive forks, full disks and files that are broken or gone."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from spark_lineage.deliver.outbox.errors import OutboxError
from spark_lineage.deliver.outbox.lock_file import locked
from spark_lineage.deliver.outbox.rescue import Trouble, is_corrupt, is_full, rescue, set_aside
from spark_lineage.deliver.outbox.reserve import Reserve
from spark_lineage.deliver.outbox.schema import BUSY_SECONDS, NewerVersionError, open_file
from spark_lineage.launch.directory import create_private

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

FILE = "outbox.db"
_OPENING_LOCK = "outbox.lock"
_RESERVE = "outbox.reserve"
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.02


class Database:
    """One file, opened when it is first needed; one transaction at a time in a process, from any thread.

    A connection of SQLite must not be in two processes: it is closed before a fork, and opened again after it, on both
    sides.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / FILE
        self._reserve = Reserve(directory / _RESERVE)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._is_durable = True
        with _forking:
            _databases.add(self)

    def add(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Add something in a transaction, all of it or nothing; it is on the disk when this returns.

        :param work: may be called again, when the file was replaced meanwhile
        :raises OutboxError: when it cannot be done; its text says what to do
        """
        return self._run("BEGIN IMMEDIATE", work, is_durable=True, is_adding=True)

    def write(self, work: Callable[[sqlite3.Connection], Result], *, is_durable: bool) -> Result:
        """Remove something, or note something about what is there; possible on a full disk too.

        :param work: as above
        :param is_durable: it is on the disk when this returns. Else the kernel has it: only a machine that loses its
            power may forget it
        :raises OutboxError: as above
        """
        return self._run("BEGIN IMMEDIATE", work, is_durable=is_durable)

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Read something, as it was at one moment.

        :raises OutboxError: as above
        """
        return self._run("BEGIN", work, is_durable=None)

    def has_reserve(self) -> bool:
        """Whether the disk has room for more."""
        return self._reserve.is_kept()

    def shrink(self) -> None:
        """Free the space of what was removed in the file system."""
        with self._lock:
            try:
                self._opened().execute("VACUUM")
                self._write_out()
            except sqlite3.Error as error:
                _log.debug("The outbox in %s stays as large as it is: %s", self.directory, error)

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._lock:
            connection, self._connection, self._file = self._connection, None, None
            if connection is not None:
                connection.close()

    def forget(self) -> None:
        """Leave the open file, and who is just using it, to the process that this one was forked from."""
        _not_ours.append(self._connection)
        self._lock = threading.RLock()
        self._connection = self._file = None

    def __del__(self) -> None:
        self.close()

    def _run(
        self,
        begin: str,
        work: Callable[[sqlite3.Connection], Result],
        *,
        is_durable: bool | None,
        is_adding: bool = False,
    ) -> Result:
        if not self._lock.acquire(timeout=2 * BUSY_SECONDS):
            raise OutboxError(f"the outbox in {self.directory} is in use by another thread for too long")
        try:
            for _ in range(_ATTEMPTS):
                try:
                    connection = self._opened()
                    if is_adding:
                        self._keep_reserve()
                    self._sync(connection, is_durable=is_durable)
                    result = _in_transaction(connection, begin, work)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    broken = self._file
                    self.close()
                    if is_corrupt(error):
                        self._replace(broken, error)
                    elif is_adding or not (is_full(error) and self._release_reserve()):
                        raise OutboxError(f"the outbox in {self.directory} cannot be used: {_advice(error)}") from error
                    continue
                if is_durable is None or self._is_in_place():
                    return result
                # Another process has set the file aside before this was written to it.
                self.close()
        finally:
            self._lock.release()
        raise OutboxError(f"the outbox in {self.directory} breaks again and again; is its disk all right?")

    def _keep_reserve(self) -> None:
        try:
            if not self._reserve.is_kept():
                self._write_out()
                self._reserve.keep()
        except OSError as error:
            raise OutboxError(
                f"the outbox in {self.directory} has no room on its disk ({error.strerror}); free some space there: "
                "what it holds is kept"
            ) from error

    def _release_reserve(self) -> bool:
        """Make room for what removes something; return whether that can have helped."""
        try:
            self._reserve.release()
            self._write_out()
        except (OSError, sqlite3.Error):
            self.close()
            return False
        return True

    def _write_out(self) -> None:
        """Have what is in the WAL written to its place, so that the WAL takes no room."""
        self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._is_in_place():
            return self._connection
        self.close()
        with _alone(self.directory):
            try:
                self._connection = open_file(self._path)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not is_corrupt(error):
                    raise
                aside = set_aside(self._path, error)
                self._connection = open_file(self._path)
                rescue(aside, self._connection)
            self._file = _identity(self._path)
            self._is_durable = True
            return self._connection

    def _replace(self, broken: tuple[int, int] | None, error: Trouble) -> None:
        with _alone(self.directory):
            # Unless another process has done so already.
            if broken == _identity(self._path):
                aside = set_aside(self._path, error)
                with closing(open_file(self._path)) as connection:
                    rescue(aside, connection)

    def _sync(self, connection: sqlite3.Connection, *, is_durable: bool | None) -> None:
        if is_durable is not None and is_durable != self._is_durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            self._is_durable = is_durable

    def _is_in_place(self) -> bool:
        return self._file is not None and self._file == _identity(self._path)


def _in_transaction(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
    try:
        connection.execute(begin)
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite itself may have done so.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other processes from opening the file; makes the directory (0700) where it is missing."""
    until = time.monotonic() + BUSY_SECONDS

    def wait() -> bool:
        time.sleep(_PAUSE_SECONDS)
        return time.monotonic() < until

    try:
        if not directory.is_dir():
            create_private(directory)
            _sync_directory(directory.parent)
        with locked(directory / _OPENING_LOCK, wait) as is_held:
            if not is_held:
                raise OutboxError(f"the outbox in {directory} is being opened by another process for too long")
            yield
    except (OSError, NewerVersionError) as error:
        raise OutboxError(f"the outbox in {directory} cannot be opened: {error}") from error


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _advice(error: Trouble) -> str:
    """Return what SQLite says, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return f"{error}{_ADVICE.get(code, '')}"


# By SQLite's result code.
_ADVICE = {
    5: "; other processes are writing for too long: is the disk slow, or one of them stopped?",
    8: "; may this user write to it?",
    10: "; is the disk full, or broken?",
    13: "; free some space there: what it holds is kept",
    14: "; may this user write to it?",
}

# Those of this process, for before it forks.
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_forking = threading.RLock()
_FORK_SECONDS = 1.0
_waiting: list[Database] = []
_left: list[Database] = []
# Never closed, which would write to a file that another process has open.
_not_ours: list[sqlite3.Connection | None] = []


def _before_fork() -> None:
    _forking.acquire()
    for database in list(_databases):
        # Where its disk hangs, the fork does not wait for it.
        if database._lock.acquire(timeout=_FORK_SECONDS):  # noqa: SLF001 - a part of it
            _waiting.append(database)
            database.close()
        else:
            _left.append(database)


def _after_fork_in_child() -> None:
    for database in _left:
        database.forget()
    _after_fork()


def _after_fork() -> None:
    _left.clear()
    while _waiting:
        _waiting.pop()._lock.release()  # noqa: SLF001
    _forking.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
