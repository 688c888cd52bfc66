"""The schema of an outbox's SQLite file, how the file is opened, and what is recovered of a broken one."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from spark_lineage.deliver.outbox.kept_event import digest_of
from spark_lineage.launch.file_system import file_system_of, is_network

# How long one waits for others that write; the task waits meanwhile, and so does a fork of its process.
BUSY_SECONDS = 2.0

# What is left of it on disk after it was larger, because of a large event.
_WAL_BYTES = 4 * 1024 * 1024
# A larger file is not examined when it is opened: a task would wait for it.
_EXAMINED_BYTES = 16 * 1024 * 1024

# Content comes last: the columns before it are read without it. An id is never used twice, so that no process removes
# an event in place of an earlier one. ``open_runs`` began here and have not ended here: a START that comes again is not
# kept, and an end may be missing.
_TABLES = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL,
    run_id TEXT NOT NULL, event_type TEXT NOT NULL, event_time TEXT NOT NULL, job TEXT NOT NULL,
    stored_at REAL NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL, is_dead INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, answer TEXT NOT NULL DEFAULT '', content BLOB NOT NULL
);
CREATE INDEX waiting ON events (destination) WHERE is_dead = 0;
CREATE UNIQUE INDEX waiting_once ON events (destination, digest) WHERE is_dead = 0;
CREATE INDEX dispensable ON events (event_type) WHERE is_dead = 0 AND event_type = 'RUNNING';
CREATE INDEX dead ON events (destination) WHERE is_dead = 1;
CREATE INDEX tried ON events (destination, attempts, run_id) WHERE is_dead = 0 AND attempts > 0;
CREATE TABLE open_runs (
    destination TEXT NOT NULL, run_id TEXT NOT NULL, job TEXT NOT NULL, began_at REAL NOT NULL,
    PRIMARY KEY (destination, run_id)
) WITHOUT ROWID;
CREATE TABLE ended_runs (
    destination TEXT NOT NULL, run_id TEXT NOT NULL, event_time TEXT NOT NULL, ended_at REAL NOT NULL,
    event_type TEXT NOT NULL, PRIMARY KEY (destination, run_id)
) WITHOUT ROWID;
CREATE TABLE breakers (
    destination TEXT PRIMARY KEY, failures INTEGER NOT NULL, opened_at REAL NOT NULL, wait_seconds REAL NOT NULL,
    answer TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE totals (bytes INTEGER NOT NULL, drained_at REAL NOT NULL);
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER event_added AFTER INSERT ON events BEGIN
    UPDATE totals SET bytes = bytes + NEW.size;
END;
CREATE TRIGGER event_removed AFTER DELETE ON events BEGIN
    UPDATE totals SET bytes = bytes - OLD.size;
END;
"""
# Text of which a byte is broken must not stand in the way of all the rest.
_READABLE = partial(str, encoding="utf-8", errors="replace")
# SQLite's result codes. The first says that a table is there or not there, or that the file is of an unknown format:
# no SQL here is wrong.
_CORRUPT = frozenset({1, 11, 26})
# The second where what SQLite says quotes a schema that is broken.
Trouble = sqlite3.DatabaseError | UnicodeDecodeError

_log = logging.getLogger(__name__)


class BrokenFileError(sqlite3.DatabaseError):
    """SQLite opens the file, but what it holds is not what this package wrote."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file, which is made for its owner alone (0600) where it is missing; only one process may do this.

    :raises sqlite3.Error: when it cannot be opened, or is no such file
    """
    # Never opened beside SQLite where it is there: to close it would take SQLite's locks away.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = _READABLE
    try:
        schema = _schema(connection)
        if not schema:
            # So that a file that was large is small again.
            connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute(f"PRAGMA journal_mode = {journal_mode(file_system_of(path.parent))}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if not schema:
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        else:
            _examine(connection, schema, is_small=path.stat().st_size <= _EXAMINED_BYTES)
    except BaseException:
        connection.close()
        raise
    return connection


def _examine(connection: sqlite3.Connection, schema: list[tuple[str, str]], *, is_small: bool) -> None:
    if schema != _expected_schema():
        # Of another version of this package, or one of its bytes is another: SQLite would do what it says now.
        raise BrokenFileError("its schema is not that of this package")
    if is_small:
        # SQLite notices few changed bytes by itself: it would then miss events that it was given.
        (finding,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if finding != "ok":
            raise BrokenFileError(finding)
        is_sum = connection.execute("SELECT bytes = (SELECT coalesce(sum(size), 0) FROM events) FROM totals")
        if is_sum.fetchall() != [(1,)]:
            raise BrokenFileError("the sum of its events' sizes is not its total")


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


@cache
def _expected_schema() -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return _schema(connection)


def journal_mode(file_system: str) -> str:
    """Return SQLite's journal mode for a type of file system: WAL, or TRUNCATE where its processes share no memory."""
    return "TRUNCATE" if is_network(file_system) else "WAL"


def kind_of(error: Trouble) -> int:
    """Return SQLite's result code, of which the lower byte is the kind; 0 where there is none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_corrupt(error: Trouble, path: Path) -> bool:
    """Whether SQLite says that the file is malformed, or none of its own, or that a part of the schema is gone.

    No change breaks a constraint unless what is there breaks it already. A byte of the file's header can say that it
    is read-only, too.
    """
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY:
        return all(os.access(each, os.W_OK) for each in (path, path.parent))
    if isinstance(error, (BrokenFileError, UnicodeDecodeError, sqlite3.IntegrityError)):
        return True
    return kind_of(error) in _CORRUPT


def set_aside(path: Path, error: Trouble) -> Path:
    """Give a broken file another name, ``outbox.db.corrupt-1`` and so on; only one process may do this.

    :raises OSError: when it cannot be renamed
    """
    number = 1
    while any(path.with_name(f"{path.name}.corrupt-{number}{suffix}").exists() for suffix in ("", "-wal")):
        number += 1
    aside = path.with_name(f"{path.name}.corrupt-{number}")
    _log.error("The outbox %s is broken (%s). It becomes %s, and a new one is begun.", path, error, aside)
    # The WAL first: beside a new file it would be taken for that one's.
    for suffix in ("-wal", "-shm", "-journal", ""):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def rescue(aside: Path, connection: sqlite3.Connection) -> None:
    """Take over the events of a broken file that are whole, in their order, and say how many there were."""
    rescued = 0
    with suppress(sqlite3.Error, UnicodeDecodeError), closing(sqlite3.connect(aside, isolation_level=None)) as broken:
        broken.row_factory = sqlite3.Row
        broken.text_factory = _READABLE
        # Else SQLite reads nothing of a file that was cut short.
        broken.execute("PRAGMA writable_schema = ON")
        connection.execute("BEGIN IMMEDIATE")
        for table, key in (("events", "id"), ("ended_runs", "run_id")):
            # From both ends, as far as they can be read.
            for order in ("ASC", "DESC"):
                with suppress(sqlite3.Error, UnicodeDecodeError):
                    for row in broken.execute(f"SELECT * FROM {table} NOT INDEXED ORDER BY {key} {order}"):  # noqa: S608
                        rescued += _copy(connection, table, dict(row))
        connection.execute("COMMIT")
    if connection.in_transaction:
        connection.execute("ROLLBACK")
        rescued = 0
    _log.error("%d events of %s were read and are kept; it may hold others that cannot be read.", rescued, aside)


def _copy(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    if table == "events" and not (
        isinstance(row.get("content"), bytes) and digest_of(row["content"]) == row.get("digest")
    ):
        return 0
    known = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    kept = {name: value for name, value in row.items() if name in known}
    query = f"INSERT OR IGNORE INTO {table} ({', '.join(kept)}) VALUES ({', '.join('?' * len(kept))})"  # noqa: S608
    try:
        added = connection.execute(query, list(kept.values())).rowcount
    except sqlite3.IntegrityError:
        return 0
    return added if table == "events" else 0
