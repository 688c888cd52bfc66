"""What is counted of jobs and of catalogs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from spark_lineage.listeners.metrics_listener import MetricsListener
from spark_lineage.merge.lineage import CatalogChange, DatasetLineage, Statistics, TaskLineage
from spark_lineage.merge.transition import Accumulator, StatusSummary, StatusTransition, TaskNumbers
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.job_events import JobEvents

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
NAME = DatasetName("file", "/wh/t")


def counted(context: ListenerContext, *events: Any) -> list[tuple[str, str, Any]]:
    listener = MetricsListener(context)
    for event in events:
        listener.on_event(event)
    told = context.metrics.told
    assert all(tags == {"dag_id": "orders", "task_id": "load"} for *_, tags in told)
    return [(kind, name, value) for kind, name, value, _ in told]


def test_jobs(context: ListenerContext, job_events: JobEvents) -> None:
    lineage = TaskLineage(
        "COMPLETE",
        inputs=(DatasetLineage(NAME),),
        outputs=(
            DatasetLineage(NAME, statistics=Statistics(3)),
            DatasetLineage(NAME, statistics=Statistics(4)),
            DatasetLineage(NAME, statistics=Statistics()),
            DatasetLineage(NAME),
        ),
    )
    created = msgspec.structs.replace(job_events.created({}), time=NOON)
    failed = job_events.changed(StatusTransition("SPARK_JOB", "1", None, "FAILED", NOON, "x"))
    ended = msgspec.structs.replace(job_events.ended("COMPLETE", lineage), time=NOON + timedelta(seconds=90))
    assert counted(context, created, failed, ended) == [
        ("incr", "spark_lineage.job.created", 1),
        ("incr", "spark_lineage.job.spark_job.failed", 1),
        ("incr", "spark_lineage.job.task.finished", 1),
        ("timing", "spark_lineage.job.duration", timedelta(seconds=90)),
        ("incr", "spark_lineage.job.inputs", 1),
        ("incr", "spark_lineage.job.outputs", 4),
        ("incr", "spark_lineage.job.rows", 7),
    ]


def test_what_spark_did(context: ListenerContext, job_events: JobEvents) -> None:
    first = TaskNumbers(
        "app-1",
        "1",
        "event log",
        finished=3,
        failed=1,
        killed=1,
        bytes_read=10,
        bytes_written=20,
        memory_bytes_spilled=5,
        disk_bytes_spilled=4,
        run_millis=300,
        gc_millis=30,
        accumulators=(Accumulator("orders read/all", 3), Accumulator("rate", 0.5)),
    )
    second = TaskNumbers(
        "app-1",
        "2",
        "event log",
        finished=5,
        run_millis=100,
        gc_millis=70,
        accumulators=(Accumulator("orders read/all", 4),),
    )
    ended = job_events.ended("COMPLETE", TaskLineage("COMPLETE", status=StatusSummary(numbers=(first, second))))
    name = "spark_lineage.application"
    assert [one for one in counted(context, ended) if one[1].startswith(name)] == [
        ("incr", f"{name}.tasks", 10),
        ("incr", f"{name}.tasks.failed", 1),
        ("incr", f"{name}.tasks.killed", 1),
        ("incr", f"{name}.bytes_read", 10),
        ("incr", f"{name}.bytes_written", 20),
        ("incr", f"{name}.memory_bytes_spilled", 5),
        ("incr", f"{name}.disk_bytes_spilled", 4),
        ("gauge", f"{name}.gc_share", 0.25),
        ("gauge", f"{name}.accumulator.orders_read_all", 7),
        ("gauge", f"{name}.accumulator.rate", 0.5),
    ]


def test_a_job_that_was_never_created_and_has_no_lineage(context: ListenerContext, job_events: JobEvents) -> None:
    assert counted(context, job_events.ended("FAIL", None)) == [("incr", "spark_lineage.job.task.failed", 1)]


def test_catalogs(context: ListenerContext, job_events: JobEvents) -> None:
    changes = (
        CatalogChange("RENAME", "VIEW", NAME, "db.w", NOON, previous_name="db.v"),
        CatalogChange("CREATE", "TABLE", NAME, "db.t", NOON, is_ignored=True),
    )
    assert counted(context, *job_events.catalog(TaskLineage("COMPLETE", catalog_changes=changes))) == [
        ("incr", "spark_lineage.catalog.rename_view", 1),
        ("incr", "spark_lineage.catalog.create_table", 1),
        ("incr", "spark_lineage.catalog.ignored", 1),
    ]
