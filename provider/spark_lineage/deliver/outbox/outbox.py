"""The outbox in one directory: put an event, have it delivered, see what waits, and decide about what was refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.deliver.outbox.database import FILE
from spark_lineage.deliver.outbox.delivery import Drain
from spark_lineage.deliver.outbox.kept_event import OutboxError, head_of
from spark_lineage.deliver.outbox.store import Store
from spark_lineage.deliver.stored_event import restore_any
from spark_lineage.launch.bounded_run import OUTBOX_FILES, BoundedRun
from spark_lineage.launch.deadline import Deadline
from spark_lineage.settings.defaults import outbox_directory

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

__all__ = ["Delivered", "Outbox", "OutboxError"]

_log = logging.getLogger(__name__)

DEFAULT_BYTES = 500_000_000
FLUSH_SECONDS = 300.0
# Of the time of a delivery, for noting that a backend gave no answer.
_RESERVE = 0.04
_MAX_RESERVE_SECONDS = 0.2


@dataclass(frozen=True)
class Delivered:
    """The result of one delivery: events that were taken, those that still wait, and those that became dead letters.

    ``discarded``: START and RUNNING of runs whose end had been delivered.
    """

    sent: int = 0
    waiting: int = 0
    refused: int = 0
    discarded: int = 0


class Outbox(Store):
    """Events on their way, in one directory, which any number of processes may share; from any thread.

    Nothing is opened or made before it is needed, and an outbox may be used on both sides of a fork.

    :param directory: made where it is missing, for its owner alone (0700)
    :param max_bytes: how many bytes of events it holds at most; then RUNNING events and dead letters make room
    """

    def __init__(self, directory: Path, *, max_bytes: int = DEFAULT_BYTES) -> None:
        super().__init__(directory)
        self._max_bytes = max_bytes

    @OUTBOX_FILES.bounded
    def put(self, destination: str, content: bytes) -> None:
        """Keep an event; it is on disk, fsynced, when this returns.

        Content that already waits for the destination is kept once, and so is the START of a run until its end is put.

        :param destination: the id of a connection, or ``conn_id/member``
        :param content: the JSON of one event of OpenLineage, without secrets
        :raises OutboxError: when it cannot be kept; the text says what to do
        :raises TimeoutError: when its disk hangs; it may still be kept later
        """
        if dropped := self.add(destination, head_of(content), content, self._max_bytes):
            text = "The outbox in %s is full: %d RUNNING events and dead letters were thrown away for a new event."
            _log.warning(text, self.directory, dropped)

    @OUTBOX_FILES.bounded
    def sent_unkept(self, destination: str, content: bytes) -> None:
        """Learn that a backend has an event that could not be kept: what waits of a run that has ended is not sent."""
        head = head_of(content)
        if head.is_terminal and head.run_id:
            with suppress(OutboxError, TimeoutError):
                self.passed(destination, head)

    def deliver(
        self,
        destinations: Iterable[str],
        open_transport: Callable[[str], Transport],
        seconds: float,
        *,
        is_asked_for: bool = False,
    ) -> Delivered:
        """Send what waits for some destinations, in order, until nothing waits or the time is over.

        It returns then, whatever a backend does; what is in flight is sent again by the next delivery, unless this
        process lives to see the answer. Nothing is raised.

        :param open_transport: its transports raise unless the backend has taken an event; called on other threads
        :param is_asked_for: the backend was mended: send although its breaker is open
        """
        deadline = Deadline(seconds)
        sending = deadline.within(seconds, leaving=min(_MAX_RESERVE_SECONDS, seconds * _RESERVE))
        is_over = threading.Event()
        if seconds <= 0:
            is_over.set()
        drains = [Drain(self, name, open_transport, is_over, is_asked_for) for name in dict.fromkeys(destinations)]
        threads = [_start(drain.run, drain.destination) for drain in drains]
        for thread in threads:
            thread.join(sending.seconds_left)
        is_over.set()
        for thread in [_start(partial(drain.give_up, seconds), "late") for drain in drains if drain.in_flight]:
            thread.join(deadline.seconds_left)
        counts = zip(*((drain.sent, drain.waiting, drain.refused, drain.discarded) for drain in drains), strict=True)
        return Delivered(*map(sum, counts))

    @OUTBOX_FILES.bounded
    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        self._database.close()


def default_directory() -> Path:
    """Return the directory of the outbox that Airflow's configuration names."""
    from spark_lineage.settings.places import option

    return outbox_directory(option("outbox_dir") or "")


def flush(
    directory: Path | None = None, destinations: Iterable[str] = (), *, seconds: float = FLUSH_SECONDS
) -> Mapping[str, Delivered]:
    """Send what waits, also to backends whose breaker is open, by the connections that the events name.

    :param directory: of an outbox; the one that Airflow's configuration names where it is None
    :param destinations: only these; all where there are none
    :param seconds: for all together
    :return: the result by destination; of those only for which something waited
    :raises OutboxError: when an outbox cannot be read
    """
    from spark_lineage.deliver.transports.opening import open_transport

    deadline = Deadline(seconds)
    only = set(destinations)
    directory = directory or default_directory()
    if not (directory / FILE).exists():
        return {}
    with closing(Outbox(directory)) as outbox:
        waiting = [one.destination for one in outbox.destinations() if one.waiting]
        return {
            name: outbox.deliver([name], open_transport, deadline.seconds_left, is_asked_for=True)
            for name in waiting
            if not only or name in only
        }


def send_unkept(content: bytes, open_transport: Callable[[], Transport], seconds: float) -> None:
    """Send the JSON of an event that cannot be kept, and wait for the answer no longer than this.

    :raises TimeoutError: when there was none by then; it may still be taken
    :raises Exception: what the transport raises
    """
    # Better once, without a second try, than never.
    sending = BoundedRun(lambda: open_transport().emit(restore_any(content)), "spark-lineage-unkept")
    if not sending.wait(seconds):
        raise TimeoutError("the backend has not answered in time: this event may be lost")


def _start(work: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=f"spark-lineage-outbox {name}", daemon=True)
    thread.start()
    return thread
