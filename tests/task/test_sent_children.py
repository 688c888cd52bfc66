from __future__ import annotations

from threading import Event

import pytest
from openlineage.client.generated.base import EventType, Job, Run, RunEvent

from spark_lineage.task.task_events import send_within

EVENTS = [
    RunEvent(
        eventType=event_type,
        eventTime="2024-01-31T12:00:00Z",
        run=Run(runId=f"0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5{number}"),
        job=Job("airflow", "dag.task"),
        producer="https://github.com/spark-lineage",
    )
    for number in range(2)
    for event_type in (EventType.START, EventType.COMPLETE)
]


class HangingBackend:
    """Takes an event only when it is told to."""

    def __init__(self) -> None:
        self.taken: list[RunEvent] = []
        self.is_free = Event()
        self.is_ended = Event()

    def send(self, event: RunEvent) -> None:
        assert self.is_free.wait(30)
        self.taken.append(event)
        if event.eventType is EventType.COMPLETE:
            self.is_ended.set()


def test_all_is_sent_in_order_where_there_is_time() -> None:
    taken: list[RunEvent] = []
    assert send_within(30, EVENTS, taken.append) == 4
    assert taken == EVENTS


def test_a_backend_that_hangs_does_not_hold_up_the_task_and_no_run_is_left_without_an_end() -> None:
    backend = HangingBackend()
    assert send_within(0.05, EVENTS, backend.send) == 0
    backend.is_free.set()
    assert backend.is_ended.wait(30)
    assert backend.taken == EVENTS[:2]


def test_what_goes_wrong_is_told() -> None:
    def refuse(event: RunEvent) -> None:
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError, match="refused"):
        send_within(30, EVENTS, refuse)
