"""Set a broken file aside, log that loudly, and keep what can still be read of it."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from spark_lineage.deliver.outbox.kept_event import digest_of
from spark_lineage.deliver.outbox.schema import BrokenFileError, readable

_log = logging.getLogger(__name__)

# SQLite's result codes.
# The first says that a table is there or not there, or that the file is of an unknown format: no SQL here is wrong.
_CORRUPT = frozenset({1, 11, 26})

# The second where what SQLite says quotes a schema that is broken.
Trouble = sqlite3.DatabaseError | UnicodeDecodeError


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
    # The latter for a column that is not there.
    with (
        suppress(sqlite3.Error, UnicodeDecodeError, IndexError),
        closing(sqlite3.connect(aside, isolation_level=None)) as broken,
    ):
        broken.row_factory = sqlite3.Row
        broken.text_factory = readable
        # Else SQLite reads nothing of a file that was cut short.
        broken.execute("PRAGMA writable_schema = ON")
        connection.execute("BEGIN IMMEDIATE")
        for row in _readable(broken, "events", "id"):
            if isinstance(row["content"], bytes) and digest_of(row["content"]) == row["digest"]:
                rescued += _copy(connection, "events", row)
        for row in _readable(broken, "ended_runs", "run_id"):
            _copy(connection, "ended_runs", row)
        connection.execute("COMMIT")
    if connection.in_transaction:
        connection.execute("ROLLBACK")
        rescued = 0
    _log.error("%d events of %s were read and are kept; it may hold others that cannot be read.", rescued, aside)


def _readable(broken: sqlite3.Connection, table: str, key: str) -> Iterator[sqlite3.Row]:
    """Return the rows from both ends, as far as they can be read; those that can be read from both come twice."""
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error, UnicodeDecodeError):
            yield from broken.execute(f"SELECT * FROM {table} NOT INDEXED ORDER BY {key} {order}")  # noqa: S608


def _copy(connection: sqlite3.Connection, table: str, row: Any) -> int:
    known = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    columns = [name for name in row.keys() if name in known]  # noqa: SIM118 - a row iterates over its values
    places = ", ".join("?" * len(columns))
    query = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - our own names
    try:
        return connection.execute(query, [row[name] for name in columns]).rowcount
    except sqlite3.IntegrityError:
        return 0
