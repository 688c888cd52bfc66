"""Sends what waits in an outbox, in the place of the courier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_lineage.deliver.courier import Drain
from spark_lineage.deliver.sender import Sender
from spark_lineage.deliver.spool import Outbox, Spool
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.lock import release, within
from spark_lineage.launch.log import Log
from spark_lineage.settings.places import option, outbox_directory

_log = Log(__name__)

FLUSH_SECONDS = 300.0


@dataclass(frozen=True)
class Delivered:
    """The outcome of a flush: how many events a backend took or refused, and how many wait."""

    sent: int = 0
    waiting: int = 0
    refused: int = 0


def default_directory() -> Path:
    """Return the directory of the outbox that Airflow's configuration names."""
    return outbox_directory(option("outbox_dir") or "")


def drain(spool: Spool, sender: Sender, deadline: Deadline, *, is_wanted: bool = True) -> Delivered:
    """Send what waits within a time, in the place of the courier; it ends its turn first.

    :param is_wanted: whether a user wants it sent whatever pauses
    """
    if (lock := spool.take_turn(within(deadline.seconds_left))) is None:
        return Delivered(waiting=len(spool.waiting()))
    try:
        if is_wanted:
            spool.pauses.end()
            spool.begin(lock, None)
        sending = Drain(spool, sender, lock, lambda: not deadline.seconds_left)
        sending.run()
        return Delivered(sending.sent, len(spool.waiting()), sending.refused)
    finally:
        release(lock)
        sender.close()


def flush(
    directory: Path | None = None, destinations: Iterable[str] = (), *, seconds: float = FLUSH_SECONDS
) -> Mapping[str, Delivered]:
    """Send what waits, also to backends that pause, by the connections that the spools are named after.

    :param directory: of an outbox; the one that Airflow's configuration names where it is None
    :param destinations: only these; all where there are none
    :param seconds: for all together
    :return: the result by destination; of those only for which something waited. Trouble is logged
    :raises SpoolError: when the outbox cannot be read
    """
    from spark_lineage.deliver.connections import open_sender

    deadline, only = Deadline(seconds), frozenset(destinations)
    found = {}
    for destination, spool in Outbox(directory or default_directory()).spools().items():
        if only and destination not in only:
            continue
        try:
            if waiting := spool.waiting():
                found[destination] = Delivered(waiting=len(waiting))
                found[destination] = drain(spool, open_sender(destination), deadline)
        except Exception as error:
            _log.error("Events for %s are not sent: %s", destination, error)
    return found
