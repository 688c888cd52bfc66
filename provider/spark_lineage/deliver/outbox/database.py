"""The SQLite file of an outbox: transactions that survive forks, full disks and files that are broken or gone."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from spark_lineage.deliver.outbox.kept_event import OutboxError
from spark_lineage.deliver.outbox.lock_file import locked
from spark_lineage.deliver.outbox.rescue import Trouble, is_corrupt, is_full, kind_of, rescue, set_aside
from spark_lineage.deliver.outbox.schema import BUSY_SECONDS, open_file
from spark_lineage.launch.directory import create_private

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

FILE = "outbox.db"
_OPENING_LOCK = "outbox.lock"
_RESERVE = "outbox.reserve"
# SQLite first writes down what it is going to change: what its WAL may hold at most, and a large event.
_RESERVE_BYTES = 4 * 1024 * 1024
# An empty file larger than this is made small.
_SPARE_BYTES = 64 * 1024 * 1024
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.02
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

    A connection of SQLite must not be in two processes: it is closed before a fork, and opened again after it, on both
    sides. A file takes space on the disk that only removing may use: else nothing could leave on a disk that is full.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / FILE
        self._reserve = directory / _RESERVE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        with _forking:
            _databases.add(self)

    def write(self, work: Callable[[sqlite3.Connection], Result], *, is_adding: bool = False) -> Result:
        """Change something in a transaction, all of it or nothing; it is on the disk when this returns.

        :param work: may be called again, when the file was replaced meanwhile
        :param is_adding: whether it may need more space; else it is possible on a full disk too
        :raises OutboxError: when it cannot be done; its text says what to do
        """
        return self._run("BEGIN IMMEDIATE", work, is_adding=is_adding)

    def change(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Remove something, or note something about what is there, by SQL and its values; else as ``write``.

        It is not synced: the kernel has it, and only a machine that loses its power may forget it.
        """

        def work(connection: sqlite3.Connection) -> None:
            for statement, values in statements:
                connection.execute(statement, values)

        self._run("BEGIN IMMEDIATE", work, is_durable=False)

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Read something, as it was at one moment.

        :raises OutboxError: as above
        """
        return self._run("BEGIN", work)

    def rows(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a query.

        :raises OutboxError: as above
        """
        return self.read(lambda connection: connection.execute(query, values).fetchall())

    def tidy(self) -> None:
        """Make a file small that is large and holds little, or whose disk has no room."""
        ((free, page, used),) = self.rows(
            "SELECT freelist_count, page_size, bytes FROM pragma_freelist_count, pragma_page_size, totals"
        )
        if free * page <= max(used * 8, _SPARE_BYTES) and self._has_reserve():
            return
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

    def __del__(self) -> None:
        self.close()

    def hold(self) -> bool:
        """Close the file and let no thread use it, before a fork; return False where its disk hangs."""
        if not self._lock.acquire(timeout=_FORK_SECONDS):
            return False
        self.close()
        return True

    def let_go(self) -> None:
        """Let threads use it again."""
        self._lock.release()

    def forget(self) -> None:
        """Leave the open file, and who is just using it, to the process that this one was forked from."""
        _not_ours.append(self._connection)
        self._lock = threading.RLock()
        self._connection = self._file = None

    def _run(
        self,
        begin: str,
        work: Callable[[sqlite3.Connection], Result],
        *,
        is_adding: bool = False,
        is_durable: bool = True,
    ) -> Result:
        is_reading = begin == "BEGIN"
        if not self._lock.acquire(timeout=2 * BUSY_SECONDS):
            raise OutboxError(f"the outbox in {self.directory} is in use by another thread for too long")
        try:
            for _ in range(_ATTEMPTS):
                try:
                    connection = self._opened()
                    if is_adding:
                        self._keep_reserve()
                    if not is_reading:
                        connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
                    with connection:
                        connection.execute(begin)
                        result = work(connection)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    broken = self._file
                    self.close()
                    if is_corrupt(error, self._path):
                        self._replace(broken, error)
                    elif is_adding or not (is_full(error) and self._release_reserve()):
                        text = f"the outbox in {self.directory} cannot be used: {error}"
                        raise OutboxError(text + _ADVICE.get(kind_of(error), "")) from error
                    continue
                if is_reading or self._is_in_place():
                    return result
                # Another process has set the file aside before this was written to it.
                self.close()
        finally:
            self._lock.release()
        raise OutboxError(f"the outbox in {self.directory} breaks again and again; is its disk all right?")

    def _has_reserve(self) -> bool:
        try:
            return self._reserve.stat().st_size >= _RESERVE_BYTES
        except FileNotFoundError:
            return False

    def _keep_reserve(self) -> None:
        try:
            if not self._has_reserve():
                self._write_out()
                _take_room(self._reserve)
        except OSError as error:
            raise OutboxError(
                f"the outbox in {self.directory} has no room on its disk ({error.strerror}); free some space there: "
                "what it holds is kept"
            ) from error

    def _release_reserve(self) -> bool:
        """Make room for what removes something; return whether that can have helped."""
        try:
            if self._reserve.exists():
                os.truncate(self._reserve, 0)
            self._write_out()
        except (OSError, sqlite3.Error):
            self.close()
            return False
        return True

    def _write_out(self) -> None:
        """Have what is in the WAL written to its place, so that the WAL takes no room."""
        self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None or not self._is_in_place():
            self.close()
            with _alone(self.directory):
                # Also before, for where it is broken.
                self._file = _identity(self._path)
                self._connection = open_file(self._path)
                self._file = _identity(self._path)
        return self._connection

    def _replace(self, broken: tuple[int, int] | None, error: Trouble) -> None:
        with _alone(self.directory):
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
    until = time.monotonic() + BUSY_SECONDS

    def wait() -> bool:
        time.sleep(_PAUSE_SECONDS)
        return time.monotonic() < until

    try:
        if not directory.is_dir():
            create_private(directory)
            descriptor = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        with locked(directory / _OPENING_LOCK, wait) as is_held:
            if not is_held:
                raise OutboxError(f"the outbox in {directory} is being opened by another process for too long")
            yield
    except OSError as error:
        raise OutboxError(f"the outbox in {directory} cannot be opened: {error}") from error


def _take_room(path: Path) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, _RESERVE_BYTES)
        else:
            os.write(descriptor, bytes(_RESERVE_BYTES))
    except OSError:
        os.ftruncate(descriptor, 0)
        raise
    finally:
        os.close(descriptor)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


# Those of this process, for before it forks.
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_forking = threading.RLock()
_FORK_SECONDS = 1.0
_at_fork: list[tuple[Database, bool]] = []
# Never closed, which would write to a file that another process has open.
_not_ours: list[sqlite3.Connection | None] = []


def _before_fork() -> None:
    _forking.acquire()
    _at_fork.extend((database, database.hold()) for database in list(_databases))


def _after_fork() -> None:
    for database, is_held in _at_fork:
        if is_held:
            database.let_go()
    _at_fork.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    for database, is_held in _at_fork:
        if not is_held:
            database.forget()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
