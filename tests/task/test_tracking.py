"""RUNNING events of a task that takes long, and that none of them comes after the last event."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from spark_lineage.launch.bounded_run import BoundedPlace
from spark_lineage.launch.log import Guard
from spark_lineage.merge.lineage import DatasetLineage, SchemaField, TaskLineage
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.submission.collector import Collector
from spark_lineage.task.tracking import Tracking

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.state import LineageState
    from spark_lineage.merge.transition import StatusSummary

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


def collected() -> Collector:
    collector = Collector()
    with EVENTS.open("rb") as stream:
        collector.read(stream, source="a_414")
    return collector


def tracking(
    send: Callable[[TaskLineage, LineCounts], None],
    status: Callable[[], StatusSummary | None] = lambda: None,
    interval_seconds: float = 0.0,
) -> Tracking:
    guard = Guard(lambda: False, logging.getLogger(__name__))
    return Tracking(interval_seconds, naming=DEFAULT_NAMING, send=send, status=status, guard=guard)


class Clock:
    """Time that passes when it is told to; ``sent`` is when events were, with what they name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, interval_seconds: float) -> None:
        self.now = 1000.0
        monkeypatch.setattr("spark_lineage.task.tracking.time", SimpleNamespace(monotonic=lambda: self.now))
        self.sent: list[tuple[float, int]] = []
        self.collector = Collector()
        self._lines = 0
        self._tracking = tracking(self._send, interval_seconds=interval_seconds)

    def _send(self, lineage: TaskLineage, _: object) -> None:
        self.sent.append((self.now - 1000, len(lineage.inputs) + len(lineage.outputs)))

    def add(self, *datasets: str, application: str = "app") -> None:
        """Have the listener tell of a run that reads these."""
        self._lines += 1
        schema = {"schema": {"fields": [{"name": "id"}]}}
        inputs = [{"namespace": "file", "name": name, "facets": schema} for name in datasets]
        event = {
            "eventTime": f"2026-01-01T00:00:00.{self._lines:06d}Z",
            "eventType": "START",
            "run": {"runId": f"00000000-0000-7000-8000-{self._lines:012d}"},
            "job": {"namespace": "ns", "name": application},
            "inputs": inputs,
            "outputs": [],
        }
        self.collector.add([json.dumps(event).encode()], source="told")

    def run(self, until: float, poll_seconds: float = 5.0) -> None:
        """Poll until then."""
        while self.now < 1000 + until:
            self.now += poll_seconds
            self._tracking.report(self.collector)
            for thread in threading.enumerate():
                if thread.name == "spark-lineage-running":
                    thread.join(5)


def test_the_first_datasets_are_told_at_once_and_the_same_ones_only_at_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, 600)
    clock.add()
    clock.run(60)
    assert clock.sent == []
    clock.add("/a")
    clock.run(70)
    assert clock.sent == [(65, 1)]
    # More lines that say nothing new.
    clock.add("/a")
    clock.run(1300)
    assert clock.sent == [(65, 1), (665, 1), (1265, 1)]


def test_new_datasets_are_told_at_growing_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 60)
    for number in range(100):
        clock.add(f"/{number}")
        clock.run(5 * (number + 1))
    times = [time for time, _ in clock.sent]
    assert times[:6] == [5, 15, 35, 75, 135, 195]
    assert [known for _, known in clock.sent[:3]] == [1, 3, 7]


def test_a_late_dataset_does_not_wait_for_an_interval_that_grew_while_nothing_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, 3600)
    clock.add("/a")
    clock.run(1000)
    clock.add("/b")
    clock.run(1010)
    assert clock.sent == [(5, 1), (1005, 2)]


def test_an_interval_that_is_shorter_than_the_first_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 3)
    clock.add("/a")
    clock.run(10, poll_seconds=1)
    assert clock.sent == [(1, 1), (4, 1), (7, 1), (10, 1)]


def test_looking_takes_no_more_than_its_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 3600)
    looks: list[float] = []

    def slow(state: LineageState, *arguments: Any, **options: Any) -> TaskLineage:
        looks.append(clock.now - 1000)
        clock.now += 2
        return task_lineage(state, *arguments, **options)

    monkeypatch.setattr("spark_lineage.task.tracking.task_lineage", slow)
    for number in range(20):
        clock.add()
        clock.run(5 * (number + 1))
    assert looks == [5, 47, 89]


def test_what_is_known_is_told_at_the_interval() -> None:
    told: list[str] = []
    one = tracking(lambda lineage, _: told.append(lineage.state))
    one.report(collected())
    one.stop(5)
    assert told == ["RUNNING"]


def test_nothing_is_told_after_the_end() -> None:
    told: list[str] = []
    one = tracking(lambda lineage, _: told.append(lineage.state))
    one.stop(5)
    # By the thread that collects, which may have hung until now.
    one.report(collected())
    time.sleep(0.2)
    assert told == []


def test_what_was_not_handed_over_when_the_end_came_is_not_told_any_more() -> None:
    told: list[str] = []
    is_asked, may_go_on = threading.Event(), threading.Event()

    def slow_status() -> None:
        is_asked.set()
        may_go_on.wait(10)

    one = tracking(lambda lineage, _: told.append(lineage.state), slow_status)
    thread = threading.Thread(target=one.report, args=(collected(),))
    thread.start()
    assert is_asked.wait(10)
    one.stop(0)
    may_go_on.set()
    thread.join(10)
    time.sleep(0.2)
    assert told == []


def test_one_that_the_backend_is_taking_is_waited_for_as_long_as_there_is_time() -> None:
    is_taking, has_taken = threading.Event(), threading.Event()

    def slow_backend(*_: object) -> None:
        is_taking.set()
        has_taken.wait(10)

    one = tracking(slow_backend)
    one.report(collected())
    assert is_taking.wait(10)
    assert one.stop(0.1) is False
    has_taken.set()
    assert one.stop(10) is True


def test_a_batch_names_what_the_end_will_say_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outputs may be dropped again, and an input without columns would be shown without them for good."""
    known, bare, written = (DatasetName("file", f"/{name}") for name in ("known", "bare", "written"))
    lineage = TaskLineage(
        state="RUNNING",
        inputs=(DatasetLineage(known, schema=(SchemaField("id", "int"),)), DatasetLineage(bare)),
        outputs=(DatasetLineage(written, schema=(SchemaField("id", "int"),)),),
    )
    monkeypatch.setattr("spark_lineage.task.tracking.task_lineage", lambda *_, **__: lineage)
    sent: list[TaskLineage] = []
    one = tracking(lambda lineage, _: sent.append(lineage), interval_seconds=0.3)
    one.report(collector := collected())
    assert one._sending is not None
    one._sending.join()
    time.sleep(0.3)
    one.report(collector)
    assert one.stop(5)
    assert [[each.dataset for each in told.inputs] for told in sent] == [[known], [known, bare]]
    assert not any(told.outputs for told in sent)


def test_the_thread_that_sends_waits_for_a_disk_no_longer_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, errors = threading.Event(), []
    disk = BoundedPlace("the disk", 0.1)

    def send(*_: object) -> None:
        try:
            disk.use(lambda: hangs.wait(30))
        except TimeoutError as error:
            errors.append(error)

    one = tracking(send)
    one.report(collected())
    assert one.stop(5)
    hangs.set()
    assert len(errors) == 1


def test_stop_where_no_thread_could_be_started_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    sent: list[TaskLineage] = []
    one = tracking(lambda lineage, _: sent.append(lineage))
    one.report(collected())
    assert one.stop(1.0)
    assert not sent
