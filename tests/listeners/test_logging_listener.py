"""A line an event in the task's log."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_lineage.listeners.logging_listener import LoggingListener
from spark_lineage.merge.lineage import CatalogChange, TaskLineage
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.job_events import JobEvents

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def lines(context: ListenerContext, caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.DEBUG, logger="task")

    def lines(*events: Any) -> list[tuple[str, str]]:
        listener = LoggingListener(context)
        for event in events:
            listener.on_event(event)
        return [(record.levelname, record.getMessage()) for record in caplog.records]

    return lines


def test_jobs(lines: Any, job_events: JobEvents) -> None:
    running = StatusTransition("APPLICATION", "app-1", "WAITING", "RUNNING", NOON, "master")
    failed = StatusTransition("DRIVER", "d-1", "RUNNING", "FAILED", NOON, "master", "", "exit 1", "password=hunter2")
    part = StatusTransition("SPARK_JOB", "4", "RUNNING", "FAILED", NOON, "driver UI")
    assert lines(
        job_events.created({}),
        job_events.changed(running),
        job_events.changed(failed),
        job_events.changed(part),
        job_events.ended("COMPLETE", None),
    ) == [
        ("INFO", "Job orders.load was created"),
        ("INFO", "APPLICATION app-1 is RUNNING"),
        ("WARNING", "DRIVER d-1 is FAILED: exit 1; password=***"),
        ("DEBUG", "SPARK_JOB 4 is FAILED"),
        ("INFO", "TASK orders.load is FINISHED"),
    ]


def test_catalogs(lines: Any, job_events: JobEvents) -> None:
    name = DatasetName("file", "/wh/t")
    changes = (
        CatalogChange("CREATE", "TABLE", name, "db.t", NOON),
        CatalogChange("CREATE", "TABLE", name, "db.t", NOON, is_certain=False, is_ignored=True),
        CatalogChange("DROP", "DATABASE", name, "db", NOON, is_certain=False, is_ignored=None),
    )
    assert lines(*job_events.catalog(TaskLineage("COMPLETE", catalog_changes=changes))) == [
        ("INFO", "CREATE TABLE db.t"),
        ("INFO", "CREATE TABLE db.t (ignored: nothing was to be done)"),
        ("INFO", "DROP DATABASE db (perhaps)"),
    ]
