"""Sends events for no longer than the task can wait, and leaves no run begun that will never end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from typing import TYPE_CHECKING

from openlineage.client.generated.base import EventType

from spark_lineage.launch.bounded_run import BoundedRun, counting_down

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent


def send_within(seconds: float, events: Iterable[RunEvent], send: Callable[[RunEvent], object]) -> int:
    """Send one after the other, and give how many were sent when all were, or when the time was over.

    After that no further run is begun; the end of the last one is still sent, if the process lives as long. A backend
    that hangs holds one event for 39 s (HTTP transport of openlineage-python 1.54: 5 s, and 5 repetitions). What
    ``send`` raises ends the sending, and is raised here unless it comes too late.
    """
    sending = _Sending(events, send)
    try:
        BoundedRun(sending.run, "lineage-sender").wait(counting_down(seconds))
    finally:
        sending.is_late.set()
    return sending.count


class _Sending:
    def __init__(self, events: Iterable[RunEvent], send: Callable[[RunEvent], object]) -> None:
        self.is_late = Event()
        self.count = 0
        self._events = events
        self._send = send

    def run(self) -> None:
        for event in self._events:
            if event.eventType is EventType.START and self.is_late.is_set():
                break
            self._send(event)
            self.count += 1
