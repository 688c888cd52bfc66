"""One listener's queue and thread: in order, bounded, and nobody waits for it but at the end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_lineage.merge.transition import StatusTransition
from spark_lineage.notify.delivery import Delivery, DeliveryCounts
from spark_lineage.notify.events import JobExecutionStatusEvent
from spark_lineage.notify.job_events import JobEvents

log = logging.getLogger("task")
# Nothing here takes that long; it keeps a failing test from hanging.
GUARD_SECONDS = 60.0
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


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
    delivery.stop(GUARD_SECONDS)
    counts = delivery.join()
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
    delivery.stop(GUARD_SECONDS)
    assert delivery.join().delivered == 1
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
    delivery.stop(GUARD_SECONDS)
    counts = delivery.join()
    assert recorder.told == events
    assert (counts.delivered, counts.failed, counts.lost) == (50, 50, 50)
    (record,) = logged.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"Listener theirs: {type(error).__name__}: ")
    assert "hunter2" not in logged.text


def test_an_error_without_a_text_is_named_and_ends_nothing(events: list[Any], logged: pytest.LogCaptureFixture) -> None:
    class Unspeakable(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise self

    class Raising(Recorder):
        def on_event(self, event: Any) -> None:
            super().on_event(event)
            raise Unspeakable

        @property
        def close(self) -> Any:
            self.is_closed = True
            raise SystemExit(3)

    recorder = Raising()
    delivery = Delivery("theirs", lambda: recorder, log)
    for event in events:
        delivery.put(event)
    delivery.stop(GUARD_SECONDS)
    counts = delivery.join()
    assert (recorder.told, recorder.is_closed) == (events, True)
    assert (counts.failed, counts.undelivered, counts.is_late) == (100, 0, False)
    taking, closing = [record.getMessage() for record in logged.records]
    assert taking.startswith("Listener theirs: Unspeakable, which has no text. It has not taken a JobCreatedEvent; ")
    assert closing == "Listener theirs: SystemExit: 3. It may have left something open."


@pytest.mark.parametrize("error", [LookupError, SystemExit, KeyboardInterrupt])
def test_one_that_cannot_be_made_is_told_nothing(
    events: list[Any], logged: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def make() -> Any:
        raise error("no url")

    delivery = Delivery("theirs", make, log)
    for event in events:
        delivery.put(event)
    delivery.stop(GUARD_SECONDS)
    assert delivery.join().failed == 100
    assert [record.getMessage() for record in logged.records] == [
        f"Listener theirs: {error.__name__}: no url. It gets no events."
    ]


def test_one_that_raises_when_it_is_closed_has_taken_all(events: list[Any], logged: pytest.LogCaptureFixture) -> None:
    class Stubborn(Recorder):
        def close(self) -> None:
            raise OSError("no")

    delivery = Delivery("x", Stubborn, log)
    delivery.put(events[0])
    delivery.stop(GUARD_SECONDS)
    counts = delivery.join()
    assert (counts.delivered, counts.lost) == (1, 0)
    assert "It may have left something open" in logged.text


def test_a_listener_need_not_close(events: list[Any]) -> None:
    told: list[Any] = []

    class Least:
        def on_event(self, event: Any) -> None:
            told.append(event)

    delivery = Delivery("x", Least, log)
    delivery.put(events[0])
    delivery.stop(GUARD_SECONDS)
    assert delivery.join().lost == 0
    assert told == events[:1]


def changed(job_events: JobEvents, number: int, exception: str = "") -> JobExecutionStatusEvent:
    return job_events.changed(
        StatusTransition("SPARK_JOB", str(number), "RUNNING", "FAILED", NOON, "event log", exception=exception)
    )


def told_after_all(delivery: Delivery, held: Recorder, *events: Any) -> DeliveryCounts:
    """Put the first event; the others while the listener is at it."""
    first, *others = events
    delivery.put(first)
    assert held.is_reached.wait(GUARD_SECONDS)
    for event in others:
        delivery.put(event)
    # It is still at the first one: nobody has waited for it.
    assert held.told == []
    held.is_free.set()
    delivery.stop(GUARD_SECONDS)
    return delivery.join()


def test_what_a_flood_has_no_room_for_is_counted_and_the_oldest_go(job_events: JobEvents, held: Recorder) -> None:
    first, *flood = [changed(job_events, number) for number in range(10_001)]
    delivery = Delivery("x", lambda: held, log, max_bytes=1_000 * first.size)
    counts = told_after_all(delivery, held, first, *flood)
    assert held.told == [first, *flood[-1_000:]]
    assert (counts.delivered, counts.dropped, counts.undelivered) == (1_001, 9_000, 0)


def test_long_texts_take_the_room_of_many_events(job_events: JobEvents, held: Recorder) -> None:
    events = [changed(job_events, number, "x" * 10_000) for number in range(20)]
    delivery = Delivery("x", lambda: held, log, max_bytes=100_000)
    counts = told_after_all(delivery, held, *events)
    assert held.told == [events[0], *events[-9:]]
    assert counts.dropped == 10


def test_neither_the_beginning_nor_the_end_is_dropped(job_events: JobEvents, events: list[Any], held: Recorder) -> None:
    created, end = events[0], job_events.ended("FAIL", None)
    flood = [changed(job_events, number) for number in range(1_000)]
    delivery = Delivery("x", lambda: held, log, max_bytes=10 * flood[0].size)
    counts = told_after_all(delivery, held, flood[0], created, *flood[1:], end)
    assert held.told == [flood[0], created, *flood[-8:], end]
    assert (counts.delivered, counts.dropped) == (11, 991)


def test_what_must_be_told_needs_no_room(job_events: JobEvents, events: list[Any], held: Recorder) -> None:
    end = job_events.ended("FAIL", None)
    delivery = Delivery("x", lambda: held, log, max_bytes=1)
    counts = told_after_all(delivery, held, events[0], events[1], changed(job_events, 0), end)
    assert held.told == [*events[:2], end]
    assert counts.dropped == 1


@pytest.mark.parametrize("has_end", [True, False])
def test_what_could_take_the_time_of_the_end_is_left_out(job_events: JobEvents, has_end: bool) -> None:
    class SlowAtFirst(Recorder):
        def on_event(self, event: Any) -> None:
            if not self.told:
                time.sleep(1.0)
            super().on_event(event)

    recorder, changes = SlowAtFirst(), [changed(job_events, number) for number in range(5)]
    events = [*changes, job_events.ended("COMPLETE", None)] if has_end else changes
    delivery = Delivery("x", lambda: recorder, log)
    for event in events:
        delivery.put(event)
    delivery.stop(2.5)
    counts = delivery.join()
    # Another one like the first would have left no time for one more. Changes of catalogs have no end.
    assert recorder.told == ([events[0], events[-1]] if has_end else events)
    assert (counts.delivered, counts.undelivered) == ((2, 4) if has_end else (5, 0))


def test_the_end_may_take_longer_than_the_others(job_events: JobEvents) -> None:
    class SlowAtTheEnd(Recorder):
        def on_event(self, event: Any) -> None:
            time.sleep(0.1 if event.is_end else 0.002)
            super().on_event(event)

    recorder, end = SlowAtTheEnd(), job_events.ended("COMPLETE", None)
    delivery = Delivery("x", lambda: recorder, log)
    for event in (*(changed(job_events, number) for number in range(2_000)), end):
        delivery.put(event)
    delivery.stop(2.0)
    counts = delivery.join()
    assert recorder.told[-1] is end
    assert (counts.delivered, counts.is_late) == (2_001 - counts.undelivered, False)
    assert counts.undelivered > 0


def test_what_is_not_told_in_time_is_counted_and_never_told(events: list[Any], held: Recorder) -> None:
    delivery = Delivery("x", lambda: held, log)
    for event in events:
        delivery.put(event)
    assert held.is_reached.wait(GUARD_SECONDS)
    delivery.stop(0)
    counts = delivery.join()
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
    delivery.stop(GUARD_SECONDS)
    delivery.put(events[0])
    counts = delivery.join()
    assert (recorder.told, counts.undelivered) == ([], 1)
