"""Sends a task's events to the connections that it names: into the outbox, from where a courier sends them."""

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
from spark_lineage.deliver.outbox import drain
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import sender_of
from spark_lineage.deliver.spool import Outbox, Outgoing, Spool, SpoolError
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
    """One backend, what it gets of this task, and how a courier sends to it; ``config`` is empty while not known."""

    spool: Spool
    profile: Profile = field(default_factory=Profile)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    names: list[str] = field(default_factory=list)
    """Those of this task's events in the spool."""
    lost: int = 0
    why_lost: str = ""


class ConnectionSender:
    """Keeps events for the destinations of some connections, and has them delivered; from any thread.

    No wait is longer than a twelfth of ``lineage_timeout``. Trouble is logged.

    :param is_for_provider: whether the events are those that the OpenLineage provider of Airflow sends
    """

    def __init__(
        self, conn_ids: Iterable[str], settings: Settings, guard: Guard, *, is_for_provider: bool = False
    ) -> None:
        self._is_for_provider = is_for_provider
        self._known: dict[str, _Destination] = {}
        # The connections that cannot be read yet; their events wait until that is mended.
        self._unread = list(conn_ids)
        self._seconds_left = settings.brief_seconds
        self._guard, self._log = guard, guard.log
        # An outbox path that cannot be used raises now, and only where there is something to send.
        self._outbox = Outbox(outbox_directory(settings.outbox_dir) if self._unread else Path())
        self._read_connections()

    @property
    def destinations(self) -> Sequence[str]:
        """The destinations that are there: a connection of kind composite has several."""
        return list(self._known)

    def _read_connections(self) -> None:
        for conn_id in tuple(self._unread):
            with self._guard(f"The events for the connection {conn_id} wait in the outbox", can_fail=False):
                found = destinations_of(conn_id)
                others = frozenset[str]()
                if not self._is_for_provider and is_active():
                    others = backends_of(airflow_transport())
                before = self._known.pop(conn_id, None) or _Destination(self._outbox.spool(conn_id))
                for name, (config, profile) in found.items():
                    if backends_of(config) & others:
                        # Two ends of one run would differ there.
                        self._log.warning(
                            "The OpenLineage provider of Airflow sends to the backend of the connection %s as well, so "
                            "nothing is sent by way of the connection. Remove one of them from the configuration.",
                            name,
                        )
                    else:
                        each = before if name == conn_id else _Destination(self._outbox.spool(name))
                        each.profile = profile
                        each.config, each.secrets = for_courier(config)
                        self._known[name] = each
                self._unread.remove(conn_id)
        for conn_id in self._unread:
            self._known.setdefault(conn_id, _Destination(self._outbox.spool(conn_id)))

    def put(self, event: Outgoing, *, at_most_seconds: float) -> None:
        """Keep an event for each destination; it is on disk when this returns.

        :param at_most_seconds: for sending it at once where it cannot be kept
        """
        if self._unread:
            self._read_connections()
        made = {Profile(): event}
        for name, each in self._known.items():
            with self._guard(f"An event for {name} may be lost", can_fail=False), self._spending():
                if each.profile not in made:
                    made[each.profile] = Outgoing.of(each.profile.encoded(event.body))
                try:
                    if kept := OUTBOX_FILES.use(partial(self._outbox.put, each.spool, made[each.profile])):
                        each.names.append(kept)
                    continue
                except (SpoolError, TimeoutError) as error:
                    problem = str(error)
                self._send_unkept(each, made[each.profile], problem, min(self._seconds_left, at_most_seconds))

    def _send_unkept(self, destination: _Destination, event: Outgoing, problem: str, seconds: float) -> None:
        """Send an event that cannot be kept, after those of its run: better once, without a second try, than never."""
        self._log.debug("An event is sent without being kept first: %s", problem)
        try:
            _send_directly(destination, event, Deadline(seconds))
        except Exception as error:
            destination.lost += 1
            destination.why_lost = f"{problem}; {error}"
            self._log.debug("An event is lost: %s", destination.why_lost)

    def deliver(self, seconds: float) -> str:
        """Wait until the backends have taken the events, but no longer than this; return what they have not."""
        counts, why = Counter[str](), ""
        with self._spending():
            deadline = Deadline(min(seconds, self._seconds_left))
            self._call_all(deadline)
            for name, each in self._known.items():
                counts["are lost"] += each.lost
                why = why or each.why_lost
                with self._guard(f"It is not known what became of the events for {name}", can_fail=False):
                    counts.update(self._outcomes(each, deadline))
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
        for name, each in list(self._known.items()):
            with self._guard(f"Events for {name} stay in the outbox", can_fail=False):
                if not each.config or not each.names:
                    continue
                if not OUTBOX_FILES.use(partial(courier.call, each.spool, each.config, each.secrets)):
                    # No process may be started here: a thread sends as long as the task waits.
                    sending = partial(drain, each.spool, sender_of(each.config), deadline, is_wanted=False)
                    BoundedRun(sending, "spark-lineage-courier")

    def _outcomes(self, destination: _Destination, deadline: Deadline) -> Iterable[str]:
        seconds, found = deadline.seconds_left, list[str]()

        def wait() -> None:
            found.extend(courier.wait(destination.spool, destination.names, seconds).values())

        # A thread, because the disk may hang.
        if destination.config and BoundedRun(wait, "spark-lineage-courier").wait(seconds + BRIEF_SECONDS):
            return found
        return ["waiting"] * len(destination.names)


def _send_directly(destination: _Destination, event: Outgoing, deadline: Deadline) -> None:
    """Send an event past the spool.

    :raises Exception: when it is not known that the backend took it
    """
    config, spool = destination.config, destination.spool
    if not config:
        raise LookupError("its connection cannot be read")

    def send() -> None:
        # Waiting events of the run go first, or a run that has ended would begin.
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

    if not BoundedRun(send, "spark-lineage-unkept").wait(deadline.seconds_left):
        raise TimeoutError("the backend has not answered in time")
