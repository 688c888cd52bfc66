"""Sends a task's events to the connections that it names: into the outbox, then to the backends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.deliver.outbox.outbox import Outbox, OutboxError
from spark_lineage.deliver.stored_event import in_namespace, restore_any
from spark_lineage.deliver.through_airflow import provider_backends
from spark_lineage.deliver.transports.opening import backends_of, destinations_of, job_namespace, open_transport
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.places import outbox_directory

if TYPE_CHECKING:
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings

_MEANWHILE_SECONDS = 5.0


class ConnectionSender:
    """Keeps events for the destinations of some connections, and has them delivered; from any thread.

    What cannot be kept, or is not taken in time, is logged. No wait is longer than ``delivery_timeout_seconds``.

    :param is_for_provider: whether the events are those that the OpenLineage provider of Airflow sends
    """

    def __init__(
        self, conn_ids: Iterable[str], settings: Settings, guard: Guard, *, is_for_provider: bool = False
    ) -> None:
        self._is_for_provider = is_for_provider
        self._namespaces: dict[str, str | None] = {}
        # Those that could not be read yet: whatever is wrong with them may be mended, and their events wait.
        self._unread = list(conn_ids)
        self._seconds_left = settings.delivery_timeout_seconds
        self._guard, self._log = guard, guard.log
        # It opens nothing yet. A path that cannot be used is found now, and only where there is something to send.
        directory = outbox_directory(settings.outbox_dir) if self._unread else Path()
        self._outbox = Outbox(directory)
        self._read_connections()

    @property
    def destinations(self) -> Sequence[str]:
        """The destinations that are there: a connection of kind composite has several."""
        return (*self._namespaces, *self._unread)

    def _read_connections(self) -> None:
        for conn_id in tuple(self._unread):
            with self._guard(f"The events for the connection {conn_id} wait in the outbox", can_fail=False):
                namespace, configs = job_namespace(conn_id), destinations_of(conn_id)
                others = frozenset() if self._is_for_provider else provider_backends()
                for name, config in configs.items():
                    if backends_of(config) & others:
                        # Two ends of one run would differ there.
                        self._log.warning(
                            "The OpenLineage provider of Airflow sends to the backend of the connection %s as well, so "
                            "nothing is sent by way of the connection. Remove one of them from the configuration.",
                            name,
                        )
                    else:
                        self._namespaces[name] = namespace
                self._unread.remove(conn_id)

    def put(self, content: bytes, *, at_most_seconds: float) -> None:
        """Keep an event for each destination; it is on disk when this returns.

        :param at_most_seconds: for sending it at once where it cannot be kept
        """
        self._read_connections()
        is_out_of_reach = False
        for destination, namespace in (self._namespaces | dict.fromkeys(self._unread)).items():
            with self._guard(f"An event for {destination} may be lost", can_fail=False), self._spending():
                named = content if namespace is None else in_namespace(content, namespace)
                try:
                    if not is_out_of_reach:
                        self._outbox.put(destination, named)
                        continue
                except (OutboxError, TimeoutError) as error:
                    # It will not take the events for the others either, so no second wait.
                    is_out_of_reach = True
                    self._log.warning("Events are sent without being kept first: %s", redact(str(error)))
                _send_directly(destination, named, min(self._seconds_left, at_most_seconds))
                self._outbox.sent_directly(destination, named)

    def deliver(self, seconds: float) -> str:
        """Wait until the backends have taken what waits for them, but no longer than this; say what they have not."""
        with self._spending():
            return self._deliver(min(seconds, self._seconds_left))

    def close(self) -> None:
        """Close the outbox's file; it is opened again when it is needed."""
        self._outbox.close()

    def deliver_meanwhile(self) -> None:
        """Deliver what waits in the background, while the task continues."""
        BoundedRun(lambda: self._deliver(_MEANWHILE_SECONDS), "spark-lineage-delivery")

    @contextmanager
    def _spending(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds_left = max(0.0, self._seconds_left - (time.monotonic() - began))

    def _deliver(self, seconds: float) -> str:
        if not self.destinations:
            return ""
        left = "not delivered yet"
        with self._guard("Events stay in the outbox", can_fail=False):
            delivered = self._outbox.deliver(self.destinations, open_transport, seconds)
            counts = {"wait in the outbox": delivered.waiting, "were refused": delivered.refused}
            left = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
            if delivered.refused:
                self._log.warning(
                    "%d events were refused; `spark-lineage outbox list --dead` shows why.", delivered.refused
                )
            if delivered.waiting:
                self._log.warning(
                    "%d events for %s wait in the outbox; the next task sends them, or `spark-lineage outbox flush`.",
                    delivered.waiting,
                    ", ".join(self.destinations),
                )
        return left


def _send_directly(destination: str, content: bytes, seconds: float) -> None:
    # Better once, without a second try, than never.
    sending = BoundedRun(lambda: open_transport(destination).emit(restore_any(content)), "spark-lineage-unkept")
    if not sending.wait(seconds):
        raise TimeoutError("the backend has not answered in time: this event may be lost")
