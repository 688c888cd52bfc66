"""The outbox: a directory for each user, with a spool for each destination, by its name."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from spark_lineage.deliver.courier import Drain
from spark_lineage.deliver.pauses import BACKEND
from spark_lineage.deliver.sender import Sender
from spark_lineage.deliver.spool import Spool, SpoolError
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.directory import encoded
from spark_lineage.launch.lock import release
from spark_lineage.launch.log import Log
from spark_lineage.settings.places import option, outbox_directory

_log = Log(__name__)

FLUSH_SECONDS = 300.0
# Another process sends meanwhile.
_TURN_SECONDS = 0.05


@dataclass(frozen=True)
class Waiting:
    """What is there for one destination; ``answer`` says why, where it cannot be read.

    ``oldest_at`` is when the oldest that waits was put, in seconds since the epoch; 0 where nothing waits. Nothing is
    sent for ``paused_seconds``, and of ``paused_runs`` runs not yet, because of ``answer``.
    """

    destination: str
    waiting: int = 0
    dead: int = 0
    bytes: int = 0
    oldest_at: float = 0.0
    paused_seconds: float = 0.0
    paused_runs: int = 0
    answer: str = ""


@dataclass(frozen=True)
class Delivered:
    """What became of events: how many a backend took or refused, and how many wait."""

    sent: int = 0
    waiting: int = 0
    refused: int = 0


class Outbox:
    """All spools of one user, below a directory of its own; nothing is made before it is needed.

    Every method raises ``SpoolError`` where a directory cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def spool(self, destination: str) -> Spool:
        """Return the spool of a destination."""
        return Spool(self.directory / encoded(destination))

    def make(self) -> None:
        """Make the directory above, so that each user can make its own in it (``run_as_user`` of a task)."""
        shared = self.directory.parent
        with suppress(OSError):
            if not shared.exists():
                shared.parent.mkdir(parents=True, exist_ok=True)
                shared.mkdir()
                # Not by the mode of mkdir, of which the umask takes its part.
                shared.chmod(0o1777)

    def others(self) -> Sequence[Path]:
        """Return the directories of other users."""
        with suppress(OSError):
            found = self.directory.parent.iterdir()
            return sorted(each for each in found if each.name.isdecimal() and each.name != self.directory.name)
        return ()

    def spools(self) -> Mapping[str, Spool]:
        """Return the spools that are there, by destination, sorted."""
        try:
            found = sorted(path for path in self.directory.iterdir() if path.is_dir())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SpoolError(f"the outbox in {self.directory} cannot be read: {error.strerror}") from error
        return {unquote(path.name): Spool(path) for path in found}

    def destinations(self) -> Sequence[Waiting]:
        """Return what is there for each destination for which something waits, or was refused."""
        found = (_summary(destination, spool) for destination, spool in self.spools().items())
        return [each for each in found if each.waiting or each.dead or each.answer]


def _summary(destination: str, spool: Spool) -> Waiting:
    try:
        return _summed(destination, spool)
    except SpoolError as error:
        return Waiting(destination, answer=str(error))


def _summed(destination: str, spool: Spool) -> Waiting:
    waiting, dead, pauses = spool.waiting(), spool.dead(), spool.pauses
    paused = {entry.run_id for entry in waiting if pauses.seconds_left(entry.run_id)}
    return Waiting(
        destination,
        len(waiting),
        len(dead),
        sum(entry.size for entry in (*waiting, *dead)),
        waiting[0].put_at.timestamp() if waiting else 0.0,
        pauses.seconds_left(BACKEND),
        len(paused),
        next(filter(None, map(pauses.why, (BACKEND, *sorted(paused)))), ""),
    )


def default_directory() -> Path:
    """Return the directory of the outbox that Airflow's configuration names."""
    return outbox_directory(option("outbox_dir") or "")


def drain(spool: Spool, sender: Sender, deadline: Deadline, *, is_wanted: bool = True) -> Delivered:
    """Send what waits within a time, in the place of the courier; it ends its turn first.

    :param is_wanted: whether a user wants it sent whatever pauses
    """
    while (lock := spool.take_turn()) is None:
        if not deadline.seconds_left:
            return Delivered(waiting=len(spool.waiting()))
        time.sleep(_TURN_SECONDS)
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
