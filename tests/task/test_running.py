"""What is ended with a task that reads, waits or is suspended, also where the task's own time is over then."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_lineage.launch.bounded_run import Kill
from spark_lineage.launch.log import Guard
from spark_lineage.submission.collector import DirectoryCollector
from spark_lineage.task.running import Running


class TaskTimeoutError(BaseException):
    """As the handler of a signal raises it, wherever the task is."""


def running(directory: Path, stopped: list[float]) -> Running:
    """Return a running task that the end of its time finds waiting for what is read."""

    def over(_: Any) -> bool:
        raise TaskTimeoutError

    def stop(seconds: float) -> bool:
        stopped.append(seconds)
        return True

    made: Any = object.__new__(Running)
    made._settings = SimpleNamespace(lineage_timeout=1.0)
    made.prepared = SimpleNamespace(kill=Kill())
    made.submission = SimpleNamespace(collector=DirectoryCollector(directory))
    made._is_ending, made._following = threading.Event(), SimpleNamespace(wait=over)
    made._tracking = SimpleNamespace(stop=stop)
    return made  # type: ignore[no-any-return]


def test_nothing_is_collected_or_told_after_a_timeout_of_the_task(tmp_path: Path) -> None:
    stopped: list[float] = []
    one = running(tmp_path, stopped)
    with pytest.raises(TaskTimeoutError):
        one.read_all()
    assert one.submission.collector.is_closed
    assert len(stopped) == 1


def test_a_task_that_is_suspended_asks_for_no_status_any_more(tmp_path: Path) -> None:
    called: list[str] = []
    monitor = SimpleNamespace(stop=lambda: called.append("stop"), flush=lambda _: called.append("flush"))
    made: Any = running(tmp_path, [])
    made.guard, made.notifications, made.is_new = Guard(lambda: True, logging.getLogger(__name__)), None, False
    made.submission.monitor = monitor
    made.suspend()
    assert called == ["stop", "flush"]
    assert made.submission.collector.is_closed
