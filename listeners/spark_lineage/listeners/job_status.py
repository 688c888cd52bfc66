"""What a listener of jobs is: told when a job is created, and each time that its status changes.

After Flink's FLIP-314. ``[spark_lineage] job_status_listeners`` names listeners by class path. The event types are
those of :mod:`spark_lineage.notify.events`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from spark_lineage.listeners.listener import TaskListener
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.events import JobCreatedEvent, JobExecutionStatusEvent, JobStatusChangedEvent, TaskRun

__all__ = [
    "JobCreatedEvent",
    "JobExecutionStatusEvent",
    "JobStatusChangedEvent",
    "JobStatusChangedListener",
    "JobStatusChangedListenerFactory",
    "ListenerContext",
    "TaskRun",
]


class JobStatusChangedListener(TaskListener):
    """Is told what happens to one try of one task, by a thread of its own (see :class:`TaskListener`)."""

    @abstractmethod
    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Take an event: a ``JobCreatedEvent`` first, then any number of ``JobExecutionStatusEvent``.

        The one whose ``is_end`` is true is the last.
        """


class JobStatusChangedListenerFactory(Protocol):
    """Makes listeners: a class of this shape is made without arguments, once for each try of a task."""

    def create_listener(self, context: ListenerContext) -> JobStatusChangedListener:
        """Make the listener of one try of a task."""
        ...
