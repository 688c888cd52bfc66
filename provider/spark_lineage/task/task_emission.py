"""The events of one task's run that we make ourselves: START, RUNNING, and the one that ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver import kept_events
from spark_lineage.deliver.through_connections import ConnectionSender
from spark_lineage.emit.openlineage_provider import emission, send
from spark_lineage.emit.task_event import AirflowTry, EventType, task_event
from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.secrets.redacted_event import encode

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import RunEvent

    from spark_lineage.launch.guard import Guard
    from spark_lineage.launch.log import Log
    from spark_lineage.settings import Settings

# For an event that cannot be kept, and is not the last one.
_SECONDS = 1.0


class TaskEmission:
    """Sends them to the connections that the task names; without one, the end is made to be kept alone.

    From any thread. Whatever goes wrong is logged.

    :param run_id: the OpenLineage run of the try, empty for what the OpenLineage provider makes it
    """

    def __init__(self, airflow: AirflowTry, settings: Settings, *, run_id: str = "", guard: Guard, logger: Log) -> None:
        self._airflow = airflow
        self._run_id = run_id
        self._guard = guard
        self.has_ended = False
        self._lock = threading.Lock()
        instance = airflow.task_instance
        self._is_silent = not emission(airflow.task, instance.dag_id, instance.task_id).is_sent
        if self._is_silent and settings.openlineage_conn_id:
            logger.info("No event is sent: an emission policy of [openlineage] says so of this task.")
        conn_ids = () if self._is_silent else settings.openlineage_conn_id
        self._sender = ConnectionSender(conn_ids, settings, guard=guard, logger=logger)

    @property
    def is_needed(self) -> bool:
        """Whether there is anybody to send to."""
        return bool(self._sender.destinations)

    def begin(self, told: OperatorLineage[Any, Any]) -> None:
        """Tell the connections that the run has begun; nobody waits for that."""
        if self.is_needed:
            self._put("START", told)

    def go_on(self, told: OperatorLineage[Any, Any]) -> bytes | None:
        """Tell what is known so far, to the OpenLineage provider's backend too, unless the end has been told.

        :return: the event, None where it could not be made
        """
        return None if self._is_silent else self._put("RUNNING", told)

    def end(
        self,
        told: OperatorLineage[Any, Any],
        event_type: EventType,
        *,
        error: str = "",
        directory: Path | None = None,
        at_most_seconds: float = _SECONDS,
    ) -> bytes | None:
        """Tell the end, of which there is one: what comes later is not sent.

        :param error: why the task did not succeed, not redacted
        :param directory: of the launch, where the event is kept first: whoever finds the process of the task killed
            tells what is there, so that no two ends of a run differ
        :param at_most_seconds: for sending it at once, where the outbox cannot keep it
        :return: the event, None where it could not be made, and where another was before it
        """
        with self._lock, self._guard("The end of the task is not sent", can_fail=False):
            if not self.has_ended:
                content = self._kept_end(encode(self._event(event_type, told, error)), directory)
                self._sender.put(content, at_most_seconds=at_most_seconds)
                self.has_ended = True
                return content
        return None

    def children(self, events: Iterable[RunEvent], directory: Path | None) -> None:
        """Tell the child runs."""
        with self._guard("Child runs are not sent", can_fail=False):
            self._keep_and_put(events, directory)

    def deliver(self, seconds: float) -> None:
        """Wait until the backends have taken everything, but no longer than this."""
        self._sender.deliver(seconds)

    def _put(self, event_type: EventType, told: OperatorLineage[Any, Any]) -> bytes | None:
        content = None
        with self._guard(f"The {event_type} of the task is not sent", can_fail=False):
            event = self._event(event_type, told)
            with self._lock:
                if self.has_ended:
                    return None
                content = encode(event)
                self._sender.put(content, at_most_seconds=_SECONDS)
            self._sender.deliver_meanwhile()
            if event_type == "RUNNING":
                send(event)
        return content

    def _event(self, event_type: EventType, told: OperatorLineage[Any, Any], error: str = "") -> RunEvent:
        return task_event(
            self._airflow,
            told,
            event_type,
            self._guard,
            run_id=self._run_id,
            error=error,
        )

    def _kept_end(self, content: bytes, directory: Path | None) -> bytes:
        """Return the end that is written down: this one, or the one of whoever thought this process lost."""
        with self._guard("The end cannot be sent again later", can_fail=False):
            if directory is not None and LINEAGE_FILES.use(directory.is_dir):
                return kept_events.append_end(directory, content)
        return content

    def _keep_and_put(self, events: Iterable[RunEvent], directory: Path | None) -> None:
        for event in events:
            content = encode(event)
            with self._guard("An event cannot be sent again later", can_fail=False):
                if directory is not None and LINEAGE_FILES.use(directory.is_dir):
                    kept_events.append(directory, content)
            self._sender.put(content, at_most_seconds=_SECONDS)
