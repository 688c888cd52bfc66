"""All listeners of a task: what one does to itself, the job and the others do not feel."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from spark_lineage.merge.lineage import CatalogChange, TaskLineage
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.job_events import JobEvents
from spark_lineage.notify.notifications import Notifications
from spark_lineage.settings import Settings

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
log = logging.getLogger("task")
GUARD_SECONDS = 60.0


class Keeping:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_event(self, event: Any) -> None:
        self.told.append(event)


class Raising(Keeping):
    def on_event(self, event: Any) -> None:
        super().on_event(event)
        raise ValueError("password=hunter2")


class Sleeping(Keeping):
    """Would sleep for a minute at each event."""

    def __init__(self) -> None:
        super().__init__()
        self.is_awake = threading.Event()

    def on_event(self, event: Any) -> None:
        self.is_awake.wait(60)
        super().on_event(event)


@pytest.fixture
def sleeping() -> Iterator[Sleeping]:
    listener = Sleeping()
    yield listener
    listener.is_awake.set()


Story = Callable[[int], list[Any]]


@pytest.fixture
def story(job_events: JobEvents) -> Story:
    """Gives all that is told of a job: that it was created, so many changes of status, and its end."""

    def story(changes: int) -> list[Any]:
        finished = (
            StatusTransition("SPARK_JOB", str(number), "RUNNING", "FINISHED", NOON, "event log", "local-1")
            for number in range(changes)
        )
        return [job_events.created({}), *map(job_events.changed, finished), job_events.ended("COMPLETE", None)]

    return story


@pytest.fixture
def opened(context: ListenerContext, job_events: JobEvents) -> Any:
    def opened(listeners: Any = (), seconds: float = GUARD_SECONDS) -> Any:
        settings = Settings(lineage_listeners=tuple(listeners), lineage_timeout=12 * seconds)
        return Notifications(context, job_events, settings)

    return opened


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("spark-lineage-listener")]


def test_without_listeners_there_is_no_thread(opened: Any, job_events: JobEvents) -> None:
    before = threading.active_count()
    notifications = opened()
    notifications.put(job_events.created({}))
    assert threading.active_count() == before
    assert notifications.close() == ()


def test_each_listener_gets_events_of_the_job_and_of_catalogs_in_order(opened: Any, job_events: JobEvents) -> None:
    listeners = Keeping(), Keeping()
    change = CatalogChange("DROP", "TABLE", DatasetName("file", "/wh/t"), "db.t", datetime(2024, 1, 31, tzinfo=UTC))
    created = job_events.created({})
    (dropped,) = job_events.catalog(TaskLineage("COMPLETE", catalog_changes=(change,)))
    notifications = opened(listeners)
    assert running()
    notifications.put(created)
    notifications.put(dropped)
    counts = notifications.close()
    assert [each.told for each in listeners] == [[created, dropped], [created, dropped]]
    assert [each.delivered for each in counts] == [2, 2]
    assert not running()


def test_one_sleeps_one_raises_one_is_flooded_and_neither_job_nor_others_feel_it(
    opened: Any, story: Story, sleeping: Sleeping, logged: pytest.LogCaptureFixture
) -> None:
    raising, keeping = Raising(), Keeping()
    notifications = opened([sleeping, raising, keeping], seconds=0.5)
    events = story(100_000)
    for event in events:
        notifications.put(event)
    # All has been notified, and the one that sleeps has not returned from its first event.
    assert sleeping.told == []
    deadline = time.monotonic() + GUARD_SECONDS
    while len(raising.told) + len(keeping.told) < 2 * len(events) and time.monotonic() < deadline:
        time.sleep(0.1)
    counts = notifications.close()
    assert sleeping.told == []
    assert raising.told == keeping.told == events
    assert [(one.delivered, one.failed, one.lost) for one in counts[1:]] == [(0, 100_002, 100_002), (100_002, 0, 0)]
    assert (counts[0].delivered, counts[0].undelivered, counts[0].is_late) == (0, 100_002, True)
    assert "Sleeping has taken 0 events and lost 100002" in logged.text
    assert "Raising has taken 0 events" in logged.text
    assert "hunter2" not in logged.text
    assert counts == notifications.close()


def test_one_that_is_slower_than_a_burst_loses_nothing_while_there_is_time(opened: Any, story: Story) -> None:
    class Slower(Keeping):
        def on_event(self, event: Any) -> None:
            time.sleep(0.0001)
            super().on_event(event)

    slower, events = Slower(), story(20_000)
    notifications = opened([slower], seconds=GUARD_SECONDS)
    for event in events:
        notifications.put(event)
    (counts,) = notifications.close()
    assert (slower.told, counts.lost) == (events, 0)


def test_one_that_is_too_slow_is_told_the_beginning_and_the_end(
    opened: Any, story: Story, logged: pytest.LogCaptureFixture
) -> None:
    class Slow(Keeping):
        def on_event(self, event: Any) -> None:
            time.sleep(0.5)
            super().on_event(event)

    slow, keeping, events = Slow(), Keeping(), story(1_000)
    notifications = opened([slow, keeping], seconds=4.0)
    for event in events:
        notifications.put(event)
    counts, others = notifications.close()
    assert (slow.told[0], slow.told[-1]) == (events[0], events[-1])
    # What is left out is in between, and all of it is behind what was told.
    assert slow.told[:-1] == events[: len(slow.told) - 1]
    assert (counts.delivered, counts.undelivered, counts.is_late) == (len(slow.told), 1_002 - len(slow.told), False)
    assert f"Slow has taken {counts.delivered} events and lost {counts.undelivered}" in logged.text
    assert (keeping.told, others.lost) == (events, 0)


def test_one_that_sleeps_costs_the_others_nothing(opened: Any, job_events: JobEvents, sleeping: Sleeping) -> None:
    keeping = Keeping()
    notifications = opened([sleeping, keeping], seconds=0.5)
    events = [job_events.created({"number": str(number)}) for number in range(1_000)]
    for event in events:
        notifications.put(event)
    notifications.close()
    assert keeping.told == events


def test_the_time_is_for_all_together(opened: Any, job_events: JobEvents) -> None:
    listeners = [Sleeping() for _ in range(20)]
    notifications = opened(listeners, seconds=0.5)
    notifications.put(job_events.created({}))
    started = time.monotonic()
    counts = notifications.close()
    # Not ten seconds, as it would be one after the other.
    assert time.monotonic() - started < 5
    assert [each.undelivered for each in counts] == [1] * 20
    for listener in listeners:
        listener.is_awake.set()


def test_a_task_that_is_killed_has_less_time(opened: Any, job_events: JobEvents, sleeping: Sleeping) -> None:
    notifications = opened([sleeping], seconds=GUARD_SECONDS)
    notifications.put(job_events.created({}))
    (counts,) = notifications.close(0.0)
    assert counts.undelivered == 1


def test_one_that_does_not_close_has_taken_all(
    opened: Any, job_events: JobEvents, logged: pytest.LogCaptureFixture
) -> None:
    is_free = threading.Event()

    class Lingering(Keeping):
        def close(self) -> None:
            is_free.wait(GUARD_SECONDS)

    notifications = opened([Lingering()], seconds=0.3)
    notifications.put(job_events.created({}))
    (counts,) = notifications.close()
    is_free.set()
    assert (counts.delivered, counts.lost, counts.is_late) == (1, 0, True)
    assert "has taken all 1 events, and has not closed within 0.3 seconds" in logged.text


def test_one_that_cannot_be_had_is_named_and_the_others_are_told(
    opened: Any, job_events: JobEvents, logged: pytest.LogCaptureFixture
) -> None:
    keeping = Keeping()
    notifications = opened(["no.such.Listener", keeping])
    notifications.put(job_events.created({}))
    counts = notifications.close()
    assert len(keeping.told) == 1
    assert [each.failed for each in counts] == [1, 0]
    assert "lineage_listeners names no.such.Listener, which cannot be imported on this worker" in logged.text


def test_what_names_no_listener_is_named(opened: Any, logged: pytest.LogCaptureFixture) -> None:
    opened([object(), 7]).close()
    assert "lineage_listeners names builtins.object, which made no listener of a context (TypeError: " in logged.text
    assert "lineage_listeners names builtins.int, which made no listener" in logged.text


def test_a_host_without_threads_left_is_no_trouble_of_the_task(
    opened: Any, job_events: JobEvents, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    notifications = opened([Keeping()])
    notifications.put(job_events.created({}))
    assert notifications.close() == ()
    assert "gets no events: can't start new thread" in logged.text


def test_the_end_is_reported_once_with_what_was_learned_before(opened: Any) -> None:
    keeping = Keeping()
    notifications = opened([keeping])
    change = CatalogChange("DROP", "TABLE", DatasetName("file", "/wh/t"), "db.t", NOON)
    notifications.changed(StatusTransition("STREAMING_QUERY", "q", None, "RUNNING", NOON, "event log"))
    notifications.ended("COMPLETE", TaskLineage("COMPLETE", catalog_changes=(change,)), "")
    notifications.ended("FAIL", None, "killed")
    notifications.close()
    running, dropped, ended = keeping.told
    assert (running.new_status, running.job_type) == ("RUNNING", "STREAMING")
    assert dropped.name == "db.t"
    assert (ended.new_status, ended.job_type) == ("FINISHED", "STREAMING")


def test_a_job_without_a_stream_ends_as_a_batch(opened: Any) -> None:
    keeping = Keeping()
    notifications = opened([keeping])
    notifications.ended("FAIL", None, "killed")
    notifications.close()
    assert [(event.new_status, event.job_type) for event in keeping.told] == [("FAILED", "BATCH")]


def test_an_end_that_could_not_be_made_is_reported_by_the_next_call(opened: Any) -> None:
    keeping = Keeping()
    notifications = opened([keeping])
    with pytest.raises(AttributeError):
        notifications.ended("COMPLETE", "no lineage", "")
    notifications.ended("FAIL", None, "")
    notifications.close()
    assert [event.new_status for event in keeping.told] == ["FAILED"]


class Changing(Keeping):
    """Empties the mappings of its context and of its events."""

    def __init__(self, context: ListenerContext) -> None:
        super().__init__()
        self.context: Any = context

    def on_event(self, event: Any) -> None:
        for mapping in (event.configuration, self.context.configuration, self.context.options):
            mapping.clear()


class Reading(Changing):
    def on_event(self, event: Any) -> None:
        self.told += [event.configuration, self.context.configuration, self.context.options]


def test_mapping_that_one_listener_empties_is_whole_for_the_others(
    opened: Any, job_events: JobEvents, context: ListenerContext
) -> None:
    told: list[Any] = []

    def reading(own: ListenerContext) -> Reading:
        listener = Reading(own)
        listener.told = told
        return listener

    given = structs.replace(context, configuration={"spark.a": "1"}, options={"b": "2"})
    settings = Settings(lineage_listeners=(Changing, reading, Changing))
    notifications = Notifications(given, job_events, settings)
    notifications.put(job_events.created({"spark.a": "1"}))
    notifications.close()
    assert told == [{"spark.a": "1"}, {"spark.a": "1"}, {"b": "2"}]
    assert given.options == {"b": "2"}
