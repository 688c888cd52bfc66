"""The outbox of a user: the spools of all destinations, for commands and servers; a task knows its spools alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from spark_lineage.deliver.courier import Delivered, drain
from spark_lineage.deliver.outgoing import SpoolError
from spark_lineage.deliver.pauses import BACKEND
from spark_lineage.deliver.spool import Spool
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.directory import path_segment
from spark_lineage.launch.log import Log
from spark_lineage.settings.places import option, outbox_directory

_log = Log(__name__)


@dataclass(frozen=True)
class Waiting:
    """The events of one destination; ``answer`` has the reason where they cannot be read.

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


class Outbox:
    """All spools of one user, below an own directory; nothing is made before it is needed.

    Every method raises ``SpoolError`` where a directory cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def spool(self, destination: str) -> Spool:
        """Return the spool of a destination."""
        return Spool(self.directory / path_segment(destination))

    def others(self) -> Sequence[Path]:
        """Return the directories of other users."""
        with suppress(OSError):
            users = self.directory.parent.iterdir()
            return sorted(path for path in users if path.name.isdecimal() and path.name != self.directory.name)
        return ()

    def spools(self) -> Mapping[str, Spool]:
        """Return the spools that are there, by destination, sorted."""
        try:
            paths = sorted(path for path in self.directory.iterdir() if path.is_dir())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SpoolError(f"the outbox in {self.directory} cannot be read: {error.strerror}") from error
        return {unquote(path.name): Spool(path) for path in paths}

    def destinations(self) -> Sequence[Waiting]:
        """Return what is there for each destination for which something waits, or was refused."""
        summaries = (_summary(destination, spool) for destination, spool in self.spools().items())
        return [summary for summary in summaries if summary.waiting or summary.dead or summary.answer]


def _summary(destination: str, spool: Spool) -> Waiting:
    try:
        waiting, dead, pauses = spool.waiting(), spool.dead(), spool.pauses
    except SpoolError as error:
        return Waiting(destination, answer=str(error))
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


def flush(
    directory: Path | None = None, destinations: Iterable[str] = (), *, seconds: float = 300.0
) -> Mapping[str, Delivered]:
    """Send what waits, also to backends that pause, by the connections that the spools are named after.

    :param directory: of an outbox; the one that Airflow's configuration names where it is None
    :param destinations: only these; all where there are none
    :param seconds: for all together
    :return: the result by destination; of those only for which something waited. Errors of a destination are logged
    :raises SpoolError: when the outbox cannot be read
    """
    from spark_lineage.deliver.connections import open_sender

    deadline, only = Deadline(seconds), frozenset(destinations)
    delivered = {}
    for destination, spool in Outbox(directory or default_directory()).spools().items():
        try:
            if (destination in only or not only) and (waiting := spool.waiting()):
                delivered[destination] = Delivered(waiting=len(waiting))
                delivered[destination] = drain(spool, open_sender(destination), deadline)
        except Exception as error:
            _log.error("Events for %s are not sent: %s", destination, error)
    return delivered
