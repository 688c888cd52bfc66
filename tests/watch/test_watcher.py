"""Sources are asked in turn, with backoff, and stopping takes no longer than a moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from spark_lineage.merge.transition import StatusReport
from spark_lineage.watch import sources as watcher_module
from spark_lineage.watch.rest import NoAnswerError
from spark_lineage.watch.sources import Watcher

REPORT = StatusReport("APPLICATION", "app-1", "RUNNING", datetime(2026, 1, 1, tzinfo=UTC), "test")
LIMIT_SECONDS = 30.0


class Source:
    name = "test"
    first_seconds, least_seconds = 0.05, 0.0

    def __init__(self, answer: object = REPORT) -> None:
        self.answer = answer
        self.asked: list[float] = []
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def poll(self) -> Iterable[StatusReport]:
        self.asked.append(time.monotonic())
        self.is_asked.set()
        self.may_answer.wait(LIMIT_SECONDS)
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer]  # type: ignore[list-item]


class LateSource(Source):
    first_seconds = 10.0


def test_what_a_source_says_is_told_until_the_stop() -> None:
    told: list[StatusReport] = []
    twice = threading.Semaphore(0)
    source = Source()
    watcher = Watcher([source], lambda report: (told.append(report), twice.release()), interval_seconds=0.05)
    watcher.start()
    assert all(twice.acquire(timeout=LIMIT_SECONDS) for _ in range(3))
    watcher.stop()
    count = len(source.asked)
    time.sleep(0.3)
    assert len(source.asked) == count
    assert set(told) == {REPORT}


def test_a_source_that_hangs_does_not_hold_the_stop_and_its_answer_comes_too_late() -> None:
    told: list[StatusReport] = []
    source = Source()
    source.may_answer.clear()
    watcher = Watcher([source], told.append, interval_seconds=0.05)
    watcher.start()
    assert source.is_asked.wait(LIMIT_SECONDS)
    began = time.monotonic()
    watcher.stop()
    assert time.monotonic() - began < 1
    source.may_answer.set()
    time.sleep(0.2)
    assert told == []


def test_a_source_without_answer_or_with_a_fault_does_not_keep_the_others_from_being_asked() -> None:
    polled = threading.Semaphore(0)
    silent, faulty, good = Source(NoAnswerError("refused")), Source(ZeroDivisionError()), Source()
    watcher = Watcher([silent, faulty, good], lambda _: polled.release(), interval_seconds=0.02)
    watcher.start()
    assert all(polled.acquire(timeout=LIMIT_SECONDS) for _ in range(20))
    watcher.stop()
    assert silent.asked
    assert faulty.asked
    # Each time that they do not answer they are left alone for twice as long.
    assert len(silent.asked) < len(good.asked)
    assert len(faulty.asked) < len(good.asked)


@pytest.mark.parametrize("answer", [REPORT, NoAnswerError("refused")])
def test_what_all_ask_at_once_is_asked_by_each_at_times_of_its_own(
    monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    monkeypatch.setattr(watcher_module, "time", SimpleNamespace(monotonic=lambda: 0.0))

    def waits() -> list[float]:
        random.seed(7)  # as a DAG file may, in each task's process
        (watched,) = Watcher([LateSource(answer)], lambda _: None, interval_seconds=5)._watched
        waits = [watched.due]
        for _ in range(7):
            watched.poll()
            waits.append(watched.due)
        return waits

    watchers = [waits() for _ in range(50)]
    middle = [10, 1.5, 2.25, 3.375, 5, 5, 5, 5] if answer is REPORT else [10, 3, 9, 27, 60, 60, 60, 60]
    for each, seconds in zip(zip(*watchers, strict=True), middle, strict=True):
        assert len(set(each)) == len(watchers)
        assert 0.8 * seconds <= min(each) < seconds < max(each) <= 1.2 * seconds


def test_a_source_is_left_alone_after_an_answer_for_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    source = Source()
    (watched,) = Watcher([source], lambda _: None, interval_seconds=5)._watched
    for least, longest in ((20.0, 24), (0.0, 6)):
        source.least_seconds = least
        watched.poll()
        assert 0.8 * least <= watched.due <= longest


def test_without_sources_there_is_no_thread() -> None:
    before = threading.active_count()
    watcher = Watcher([], lambda _: None, interval_seconds=1)
    watcher.start()
    assert threading.active_count() == before
    watcher.stop()
