"""Sends a task's events to the connections that it names: into their spools, from where couriers send them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver import courier
from spark_lineage.deliver.connections import airflow_transport, backends_of, destinations_of, for_courier
from spark_lineage.deliver.outgoing import Outgoing, SpoolError
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import sender_of
from spark_lineage.deliver.spool import Spool
from spark_lineage.emit.task_event import is_active
from spark_lineage.launch.bounded_run import BRIEF_SECONDS, OUTBOX_FILES, BoundedRun, Deadline
from spark_lineage.launch.directory import path_segment
from spark_lineage.settings.places import outbox_directory

if TYPE_CHECKING:
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings

_MEANWHILE_SECONDS = 5.0


@dataclass
class _Destination:
    """One backend, and what it gets of this task; ``config`` is empty while its connection cannot be read."""

    spool: Spool
    profile: Profile = field(default_factory=Profile)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    names: list[str] = field(default_factory=list)
    """Those of this task's events in the spool."""
    lost: int = 0
    why_lost: str = ""


class ConnectionSender:
    """Stores events for the destinations of some connections, and has them delivered; from any thread.

    No wait is longer than a twelfth of ``lineage_timeout``. Errors are logged.

    :param is_for_provider: whether the events are those that the OpenLineage provider of Airflow sends
    """

    def __init__(
        self, conn_ids: Iterable[str], settings: Settings, guard: Guard, *, is_for_provider: bool = False
    ) -> None:
        self._is_for_provider = is_for_provider
        self._destinations: dict[str, _Destination] = {}
        # The connections that cannot be read yet; their events wait until they can.
        self._unread = list(conn_ids)
        self._seconds_left = settings.brief_seconds
        self._guard, self._log = guard, guard.log
        # An outbox path that cannot be used raises now, and only where there is something to send.
        self._directory = outbox_directory(settings.outbox_dir) if self._unread else Path()
        self._read_connections()

    @property
    def destinations(self) -> Sequence[str]:
        """The destinations that are there: a connection of kind composite has several."""
        return list(self._destinations)

    def _read_connections(self) -> None:
        for conn_id in tuple(self._unread):
            with self._guard(f"The events for the connection {conn_id} wait in the outbox", can_fail=False):
                self._read(conn_id)
                self._unread.remove(conn_id)
        for conn_id in self._unread:
            self._destinations.setdefault(conn_id, self._destination(conn_id))

    def _read(self, conn_id: str) -> None:
        destinations, others = destinations_of(conn_id), frozenset[str]()
        if not self._is_for_provider and is_active():
            others = backends_of(airflow_transport())
        unread = self._destinations.pop(conn_id, None)
        for name, (config, profile) in destinations.items():
            if backends_of(config) & others:
                # Two ends of one run would differ there.
                self._log.warning(
                    "The OpenLineage provider of Airflow sends to the backend of the connection %s as well, so "
                    "nothing is sent by way of the connection. Remove one of them from the configuration.",
                    name,
                )
                continue
            destination = unread if unread is not None and name == conn_id else self._destination(name)
            destination.profile = profile
            destination.config, destination.secrets = for_courier(config)
            self._destinations[name] = destination

    def _destination(self, name: str) -> _Destination:
        return _Destination(Spool(self._directory / path_segment(name)))

    def put(self, event: Outgoing, *, at_most_seconds: float) -> None:
        """Store an event for each destination; it is on disk when this returns.

        :param at_most_seconds: for sending it at once where it cannot be stored
        """
        if self._unread:
            self._read_connections()
        for name, destination in self._destinations.items():
            with self._guard(f"An event for {name} may be lost", can_fail=False), self._spending():
                profile = destination.profile
                own = event if profile == Profile() else Outgoing.of(profile.encoded(event.body))
                try:
                    if stored := OUTBOX_FILES.use(partial(destination.spool.put, own)):
                        destination.names.append(stored)
                except (SpoolError, TimeoutError) as error:
                    self._send_unstored(destination, own, str(error), min(self._seconds_left, at_most_seconds))

    def _send_unstored(self, destination: _Destination, event: Outgoing, problem: str, seconds: float) -> None:
        """Send an event that cannot be stored: better once, without a second try, than never."""
        self._log.debug("An event is sent without being stored first: %s", problem)
        try:
            sending = BoundedRun(partial(_send_directly, destination, event, Deadline(seconds)), "spark-lineage-unkept")
            why = "" if sending.wait(seconds) else "the backend has not answered in time"
        except Exception as error:
            why = str(error) or type(error).__name__
        if why:
            destination.lost += 1
            destination.why_lost = f"{problem}; {why}"
            self._log.debug("An event is lost: %s", destination.why_lost)

    def deliver(self, seconds: float) -> str:
        """Wait until the backends have accepted the events, but no longer than this; return what they have not."""
        counts, why = Counter[str](), ""
        with self._spending():
            deadline = Deadline(min(seconds, self._seconds_left))
            self._call_all(deadline)
            for name, destination in self._destinations.items():
                counts["are lost"] += destination.lost
                why = why or destination.why_lost
                with self._guard(f"It is not known what became of the events for {name}", can_fail=False):
                    counts.update(_outcomes(destination, deadline.seconds_left))
        text = {
            "waiting": "waits in the outbox" if counts["waiting"] == 1 else "wait in the outbox",
            "refused": "were refused, see `spark-lineage outbox list --dead`",
            "gone": "are gone from the outbox",
            "are lost": f"are lost ({why})",
        }
        return ", ".join(f"{counts[key]} {text}" for key, text in text.items() if counts[key])

    def deliver_meanwhile(self) -> None:
        """Have what waits delivered in the background, while the task continues."""
        BoundedRun(lambda: self._call_all(Deadline(_MEANWHILE_SECONDS)), "spark-lineage-courier")

    @contextmanager
    def _spending(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds_left = max(0.0, self._seconds_left - (time.monotonic() - began))

    def _call_all(self, deadline: Deadline) -> None:
        for name, destination in list(self._destinations.items()):
            with self._guard(f"Events for {name} stay in the outbox", can_fail=False):
                spool, config = destination.spool, destination.config
                if not config or not destination.names:
                    continue
                if not OUTBOX_FILES.use(partial(courier.call, spool, config, destination.secrets)):
                    # No process may be started here: a thread sends as long as the task waits.
                    sending = partial(courier.drain, spool, sender_of(config), deadline, is_wanted=False)
                    BoundedRun(sending, "spark-lineage-courier")


def _outcomes(destination: _Destination, seconds: float) -> Sequence[str]:
    """Wait for the events of a destination, and return what became of each."""
    spool, names, outcomes = destination.spool, destination.names, list[str]()
    # A thread, because the disk may hang.
    if destination.config and BoundedRun(
        lambda: outcomes.extend(courier.wait(spool, names, seconds).values()), "spark-lineage-courier"
    ).wait(seconds + BRIEF_SECONDS):
        return outcomes
    return ["waiting"] * len(names)


def _send_directly(destination: _Destination, event: Outgoing, deadline: Deadline) -> None:
    """Send an event past the spool, after what waits of its run: else a run that has ended would begin.

    :raises Exception: when it is not known that the backend accepted it
    """
    spool, config = destination.spool, destination.config
    if not config:
        raise LookupError("its connection cannot be read")
    before = []
    with suppress(SpoolError):
        before = [entry.name for entry in spool.waiting() if entry.run_id == path_segment(event.run_id)]
    if before:
        courier.call(spool, config, destination.secrets)
        if "waiting" in courier.wait(spool, before, deadline.seconds_left).values():
            raise TimeoutError("what was sent before it waits still")
    with closing(sender_of(config)) as sender:
        sender.send(event)
    with suppress(SpoolError):
        spool.note(event)
