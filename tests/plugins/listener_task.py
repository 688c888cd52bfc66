"""Fixtures: a task whose listeners are told something, without Spark."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.events import TaskRun
from spark_lineage.notify.job_events import JobEvents

log = logging.getLogger("task")


class Counted:
    """Metrics that are kept."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, Any, dict[str, str]]] = []

    def incr(self, name: str, count: int = 1, *, tags: Any = None) -> None:
        self.told.append(("incr", name, count, dict(tags or {})))

    def gauge(self, name: str, value: float, *, tags: Any = None) -> None:
        self.told.append(("gauge", name, value, dict(tags or {})))

    def timing(self, name: str, seconds: Any, *, tags: Any = None) -> None:
        self.told.append(("timing", name, seconds, dict(tags or {})))


@pytest.fixture
def task() -> TaskRun:
    return TaskRun("orders", "load", "manual__1", 3, 2)


@pytest.fixture
def job_events(task: TaskRun) -> JobEvents:
    return JobEvents(task, "ns", "orders.load")


@pytest.fixture
def context(task: TaskRun) -> ListenerContext:
    return ListenerContext(
        task=task,
        configuration={"spark.app.name": "orders"},
        options={},
        logger=log,
        metrics=Counted(),
    )


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The task's log, from information on."""
    caplog.set_level(logging.INFO, logger="task")
    return caplog
