"""The base of all listeners: a context, how one is made and closed, and the events that it gets.

After Flink's FLIP-314 and FLIP-294. The setting ``lineage_listeners`` names listeners by class path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.events import (
    CatalogModificationEvent,
    Event,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatusChangedEvent,
    TaskRun,
)

__all__ = [
    "CatalogModificationEvent",
    "Event",
    "JobCreatedEvent",
    "JobExecutionStatusEvent",
    "JobStatusChangedEvent",
    "ListenerContext",
    "TaskListener",
    "TaskRun",
]


class TaskListener(ABC):
    """Get the events of one try of one task.

    A listener has its own thread, which makes it and calls it with one event at a time, in order. Its errors are logged
    and counted; then it gets the next event.
    """

    def __init__(self, context: ListenerContext) -> None:
        self.context = context

    @abstractmethod
    def on_event(self, event: Event) -> None:
        """Take an event.

        A ``JobCreatedEvent`` first, then any number of ``JobExecutionStatusEvent``, the last of which has ``is_end``.
        Before that, a ``CatalogModificationEvent`` for each change of a catalog, in the order in which they happened.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Release what the listener holds, after the last event."""
