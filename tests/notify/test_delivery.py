"""One listener's queue and thread: in order, bounded, and nobody waits for it but at the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from spark_lineage.notify.delivery import Delivery
from spark_lineage.notify.job_events import JobEvents

log = logging.getLogger("task")
# Nothing here takes that long; it keeps a failing test from hanging.
GUARD_SECONDS = 60.0


class Recorder:
    """Keeps what it is told; holds until it is let go."""

    def __init__(self, *, is_held: bool = False) -> None:
        self.told: list[Any] = []
        self.threads: set[threading.Thread] = set()
        self.is_closed = False
        self.is_reached = threading.Event()
        self.is_free = threading.Event()
        if not is_held:
            self.is_free.set()

    def on_event(self, event: Any) -> None:
        self.threads.add(threading.current_thread())
        self.is_reached.set()
        self.is_free.wait(GUARD_SECONDS)
        self.told.append(event)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def held() -> Iterator[Recorder]:
    recorder = Recorder(is_held=True)
    yield recorder
    recorder.is_free.set()


@pytest.fixture
def events(job_events: JobEvents) -> list[Any]:
    return [job_events.created({"number": str(number)}) for number in range(100)]


def test_all_is_told_in_order_by_one_thread(events: list[Any]) -> None:
    recorder = Recorder()
    delivery = Delivery("x", lambda: recorder, log)
    for event in events:
        delivery.put(event)
    delivery.stop()
    counts = delivery.join(GUARD_SECONDS)
    assert recorder.told == events
    assert (counts.listener, counts.delivered, counts.lost, counts.is_late) == ("x", 100, 0, False)
    (thread,) = recorder.threads
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert recorder.is_closed


def test_nothing_of_the_listener_runs_on_the_thread_that_notifies(events: list[Any]) -> None:
    is_free, made_by = threading.Event(), []

    def make() -> Recorder:
        made_by.append(threading.current_thread())
        is_free.wait(GUARD_SECONDS)
        return recorder

    recorder = Recorder()
    delivery = Delivery("x", make, log)
    delivery.put(events[0])
    is_free.set()
    delivery.stop()
    assert delivery.join(GUARD_SECONDS).delivered == 1
    assert made_by == list(recorder.threads) != [threading.current_thread()]


@pytest.mark.parametrize("error", [ValueError("password=hunter2"), SystemExit(3)])
def test_one_that_raises_is_told_the_next_event(
    events: list[Any], logged: pytest.LogCaptureFixture, error: BaseException
) -> None:
    class Raising(Recorder):
        def on_event(self, event: Any) -> None:
            super().on_event(event)
            if len(self.told) % 2:
                raise error

    recorder = Raising()
    delivery = Delivery("theirs", lambda: recorder, log)
    for event in events:
        delivery.put(event)
    delivery.stop()
    counts = delivery.join(GUARD_SECONDS)
    assert recorder.told == events
    assert (counts.delivered, counts.failed, counts.lost) == (50, 50, 50)
    (record,) = logged.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"Listener theirs: {type(error).__name__}: ")
    assert "hunter2" not in logged.text


def test_one_that_cannot_be_made_is_told_nothing(events: list[Any], logged: pytest.LogCaptureFixture) -> None:
    def make() -> Any:
        raise LookupError("no url")

    delivery = Delivery("theirs", make, log)
    for event in events:
        delivery.put(event)
    delivery.stop()
    assert delivery.join(GUARD_SECONDS).failed == 100
    assert [record.getMessage() for record in logged.records] == [
        "Listener theirs: LookupError: no url. It is told nothing."
    ]


def test_one_that_raises_when_it_is_closed_has_taken_all(events: list[Any], logged: pytest.LogCaptureFixture) -> None:
    class Stubborn(Recorder):
        def close(self) -> None:
            raise OSError("no")

    delivery = Delivery("x", Stubborn, log)
    delivery.put(events[0])
    delivery.stop()
    counts = delivery.join(GUARD_SECONDS)
    assert (counts.delivered, counts.lost) == (1, 0)
    assert "It may have left something open" in logged.text


def test_a_listener_need_not_close(events: list[Any]) -> None:
    told: list[Any] = []

    class Least:
        def on_event(self, event: Any) -> None:
            told.append(event)

    delivery = Delivery("x", Least, log)
    delivery.put(events[0])
    delivery.stop()
    assert delivery.join(GUARD_SECONDS).lost == 0
    assert told == events[:1]


def test_a_flood_is_taken_without_waiting_and_the_oldest_go(job_events: JobEvents, held: Recorder) -> None:
    delivery = Delivery("x", lambda: held, log, max_queued=1_000)
    first, *flood = [job_events.created({"number": str(number)}) for number in range(100_001)]
    delivery.put(first)
    assert held.is_reached.wait(GUARD_SECONDS)
    for event in flood:
        delivery.put(event)
    # It is still at the first one: nobody has waited for it.
    assert held.told == []
    held.is_free.set()
    delivery.stop()
    counts = delivery.join(GUARD_SECONDS)
    assert held.told == [first, *flood[-1_000:]]
    assert (counts.delivered, counts.dropped, counts.undelivered) == (1_001, 99_000, 0)


def test_the_last_word_is_not_dropped(job_events: JobEvents, events: list[Any], held: Recorder) -> None:
    delivery = Delivery("x", lambda: held, log, max_queued=2)
    delivery.put(events[0])
    assert held.is_reached.wait(GUARD_SECONDS)
    end, other_end, last_end = (job_events.ended("FAIL", None, exception=str(number)) for number in range(3))
    for event in (end, *events[1:4], other_end, events[4]):
        delivery.put(event)
    # With two last words there is no room for anything else, until there is a third.
    delivery.put(last_end)
    held.is_free.set()
    delivery.stop()
    counts = delivery.join(GUARD_SECONDS)
    assert held.told == [events[0], other_end, last_end]
    assert (counts.delivered, counts.dropped) == (3, 5)


def test_what_is_not_told_in_time_is_counted_and_never_told(events: list[Any], held: Recorder) -> None:
    delivery = Delivery("x", lambda: held, log)
    for event in events:
        delivery.put(event)
    assert held.is_reached.wait(GUARD_SECONDS)
    delivery.stop()
    counts = delivery.join(0)
    # The one that it works on is one of them.
    assert (counts.delivered, counts.undelivered, counts.is_late) == (0, 100, True)
    held.is_free.set()
    delivery._thread.join(GUARD_SECONDS)
    assert held.told == events[:1]
    assert held.is_closed
    assert delivery.counts.delivered == 0


def test_what_comes_after_the_end_is_not_told(events: list[Any]) -> None:
    recorder = Recorder()
    delivery = Delivery("x", lambda: recorder, log)
    delivery.stop()
    delivery.put(events[0])
    counts = delivery.join(GUARD_SECONDS)
    assert (recorder.told, counts.undelivered) == ([], 1)
