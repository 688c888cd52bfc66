"""Sends events for no longer than the task can wait, and leaves no run begun that will never end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from typing import TYPE_CHECKING

from openlineage.client.generated.base import EventType

from spark_lineage.launch.bounded_run import BoundedRun

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent


def send_within(seconds: float, events: Iterable[RunEvent], send: Callable[[RunEvent], object]) -> int:
    """Send one after the other, and return how many were sent when all were, or when the time was over.

    After that no further run is begun; the end of the last one is still sent, if the process lives as long. A backend
    that hangs holds one event for 39 s (HTTP transport of openlineage-python 1.54: 5 s, and 5 repetitions). What
    ``send`` raises ends the sending, and is raised here unless it comes too late.
    """
    is_late = Event()
    sent: list[RunEvent] = []

    def run() -> None:
        for event in events:
            if event.eventType is EventType.START and is_late.is_set():
                break
            send(event)
            sent.append(event)

    try:
        BoundedRun(run, "lineage-sender").wait(seconds)
    finally:
        is_late.set()
    return len(sent)
