"""Listeners that harm whoever waits for them: one hangs, one raises, one is too slow for all that it is told."""

from __future__ import annotations

import time

from spark_lineage.listeners.listener import Event, JobCreatedEvent, TaskListener


class Sleeping(TaskListener):
    """Sleeps for ten minutes at each event."""

    def on_event(self, event: Event) -> None:
        """Sleep."""
        time.sleep(600)


class Raising(TaskListener):
    """Raises at each event."""

    def on_event(self, event: Event) -> None:
        """Raise what holds a secret."""
        raise ValueError("password=hunter2")


class Flooded(TaskListener):
    """Logs the beginning and the end, and takes a tenth of a second for each event."""

    def on_event(self, event: Event) -> None:
        """Take the time."""
        time.sleep(0.1)
        if isinstance(event, JobCreatedEvent) or event.is_kept:
            self.context.logger.info("Flooded was told of a %s", type(event).__name__)
