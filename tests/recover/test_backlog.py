"""The thread that looks for lost tries when their workers have had their time."""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import TYPE_CHECKING

import pytest

from spark_lineage.launch.launch import Launch, TaskKey
from spark_lineage.recover import backlog
from spark_lineage.recover.backlog import Backlog
from spark_lineage.recover.search import ChildEnd, LostTry

if TYPE_CHECKING:
    from collections.abc import Iterator

LOST = LostTry(TaskKey("dag", "run", "task"), Launch("/lineage", "application", try_number=1, run_id="run"))


class Search:
    """Tells when it was asked."""

    def __init__(self, *lost: LostTry, error: Exception | None = None) -> None:
        self.asked: queue.Queue[float] = queue.Queue()
        self._lost = list(lost)
        self._error = error

    def __call__(self) -> list[LostTry]:
        self.asked.put(time.monotonic())
        if self._error is not None:
            raise self._error
        return self._lost


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[queue.Queue[list[LostTry]]]:
    """What would have been closed in a process of its own."""
    closed: queue.Queue[list[LostTry]] = queue.Queue()
    monkeypatch.setattr(backlog, "close_in_process", closed.put)
    return closed


def test_the_worker_has_its_time(closed: queue.Queue[list[LostTry]]) -> None:
    search, begun = Search(LOST), time.monotonic()
    Backlog(0.3).add(search)
    assert time.monotonic() - begun < 0.2
    assert search.asked.get(timeout=10) - begun >= 0.3
    assert closed.get(timeout=10) == [LOST]


def test_trouble_is_logged_without_secrets_and_the_next_is_looked_for(
    closed: queue.Queue[list[LostTry]], caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Backlog(0.0)
    waiting.add(Search(error=RuntimeError("password=hunter2")))
    waiting.add(Search(LOST))
    assert closed.get(timeout=10) == [LOST]
    assert "The ends of lost tries are not sent: " in caplog.text
    assert "hunter2" not in caplog.records[0].getMessage()


def test_a_try_that_stays_open_is_given_up(closed: queue.Queue[list[LostTry]]) -> None:
    waiting, other = Backlog(0.0), LostTry(LOST.task, Launch("/other", "other"))
    for _ in range(5):
        waiting.add(Search(LOST))
    waiting.add(Search(other))
    assert [closed.get(timeout=10) for _ in range(4)] == [[LOST], [LOST], [LOST], [other]]


def test_what_is_seen_anew_each_time_is_not_remembered(closed: queue.Queue[list[LostTry]]) -> None:
    waiting = Backlog(0.0)
    for seen_at in (1.0, 2.0):
        waiting.close(lambda seen_at=seen_at: [ChildEnd(LOST.task, LOST.launch, seen_at=seen_at)])
    assert closed.qsize() == 2
    assert not +waiting._handed


def test_too_many_are_dropped_and_never_block(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(backlog, "_MAX_WAITING", 2)
    waiting = Backlog(60.0)
    for _ in range(5):
        waiting.add(Search())
    assert "Too many tasks have ended at once" in caplog.text


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # as Airflow's executors do (from Python 3.12 on)
def test_a_forked_process_has_a_thread_of_its_own(closed: queue.Queue[list[LostTry]]) -> None:
    waiting = Backlog(0.0)
    waiting.add(Search(LOST))
    closed.get(timeout=10)
    if (child := os.fork()) == 0:
        search = Search()
        waiting.add(search)
        try:
            search.asked.get(timeout=10)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_sweep_comes_again(closed: queue.Queue[list[LostTry]]) -> None:
    search = Search()
    Backlog(0.0).repeat(search, 0.05)
    assert search.asked.get(timeout=10) < search.asked.get(timeout=10)
    assert any(thread.name == "spark-lineage-sweep" and thread.daemon for thread in threading.enumerate())
