"""What every listener has: a context, a way to be made, and an end."""

from __future__ import annotations

from abc import ABC
from typing import Self

from spark_lineage.notify.context import ListenerContext


class TaskListener(ABC):  # noqa: B024 - what it is told is said by those that inherit
    """Belongs to one try of one task.

    All of it is called by one thread that does nothing else: in order, and never twice at a time. What it raises is
    logged and counted, and it is told the next event. The class is its own factory, unless you write another.
    """

    def __init__(self, context: ListenerContext) -> None:
        self.context = context

    @classmethod
    def create_listener(cls, context: ListenerContext) -> Self:
        """Make the listener of one try of a task."""
        return cls(context)

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Let go of what it holds, after the last event."""
