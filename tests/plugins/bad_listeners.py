"""Listeners that harm whoever waits for them: one hangs, one raises, one is too slow for all that it is told."""

from __future__ import annotations

import time

from spark_lineage.listeners.job_status import JobCreatedEvent, JobStatusChangedEvent, JobStatusChangedListener


class Sleeping(JobStatusChangedListener):
    """Sleeps for ten minutes at each event."""

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Sleep."""
        time.sleep(600)


class Raising(JobStatusChangedListener):
    """Raises at each event."""

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Raise what holds a secret."""
        raise ValueError("password=hunter2")


class Flooded(JobStatusChangedListener):
    """Logs the beginning and the end, and takes a tenth of a second for each event."""

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Take the time."""
        time.sleep(0.1)
        if isinstance(event, JobCreatedEvent) or event.is_end:
            self.context.logger.info("Flooded was told of a %s", type(event).__name__)
