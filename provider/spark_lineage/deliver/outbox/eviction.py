"""Who makes room when the outbox is full: first what later events tell again, then what nobody takes."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from spark_lineage.deliver.outbox.errors import OutboxFullError


@dataclass(frozen=True)
class Dropped:
    """How many events were thrown away for a new one."""

    running: int = 0
    dead: int = 0


def make_room(connection: sqlite3.Connection, size: int, max_bytes: int) -> Dropped:
    """Throw away as much as a new event of ``size`` bytes needs, inside of the transaction that adds it.

    RUNNING events that wait go first, the oldest first: a later event of the run tells the same. Then dead letters, the
    oldest first. Everything else stays.

    :raises OutboxFullError: when the event does not fit all the same; nothing may be thrown away then
    """
    (used,) = connection.execute("SELECT bytes FROM totals").fetchone()
    missing = used + size - max_bytes
    if missing <= 0:
        return Dropped()
    counts = []
    for condition in ("is_dead = 0 AND event_type = 'RUNNING'", "is_dead = 1"):
        ids = []
        for event_id, freed in connection.execute(f"SELECT id, size FROM events WHERE {condition} ORDER BY id"):  # noqa: S608
            if missing <= 0:
                break
            ids.append((event_id,))
            missing -= freed
        connection.executemany("DELETE FROM events WHERE id = ?", ids)
        counts.append(len(ids))
    if missing > 0:
        raise OutboxFullError(
            f"the outbox is full: an event of {size} bytes does not fit beside {used} of {max_bytes} bytes; what it "
            "holds is kept. See what waits with `spark-lineage outbox list`, send it with `outbox flush`, or raise "
            "outbox_max_bytes"
        )
    return Dropped(*counts)
