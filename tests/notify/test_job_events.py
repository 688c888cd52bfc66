"""The events of one job: their names, their times, and that no secret is in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from spark_lineage.merge.lineage import Application, CatalogChange, DatasetLineage, TaskLineage
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.events import JobCreatedEvent, JobExecutionStatusEvent, TaskRun
from spark_lineage.notify.job_events import JobEvents

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
SECRET = DatasetName("s3://me:hunter2@bucket", "orders")
LINEAGE = TaskLineage(
    "COMPLETE",
    outputs=(DatasetLineage(SECRET),),
    applications=(
        Application("r2", "ns", "app", application_id="local-2"),
        Application("r1", "ns", "app", application_id="local-1"),
        Application("r0", "ns", "app"),
    ),
)


def test_a_job_is_created(job_events: JobEvents, task: TaskRun) -> None:
    before = datetime.now(UTC)
    created = job_events.created(
        {"spark.app.name": "orders", "spark.hadoop.fs.s3a.secret.key": "hunter2", "url": "jdbc:x://me:hunter2@h/d"},
        lineage=LINEAGE,
    )
    assert (created.task, created.job_namespace, created.job_name) == (task, "ns", "orders.load")
    assert (created.job_type, created.application_ids) == (None, ("local-1", "local-2"))
    assert before <= created.time <= datetime.now(UTC)
    assert created.configuration["spark.app.name"] == "orders"
    assert "hunter2" not in str(created)
    assert created.is_kept


def test_nothing_need_be_known_of_a_job_that_is_created(job_events: JobEvents) -> None:
    created = job_events.created({})
    assert (created.job_type, created.lineage, created.application_ids) == (None, None, ())


def test_a_status_changes(job_events: JobEvents) -> None:
    changed = job_events.changed(
        StatusTransition(
            "SPARK_JOB", "4", "RUNNING", "FAILED", NOON, "driver UI", "local-1", "stage 4", "password=hunter2 is wrong"
        ),
    )
    assert (changed.subject, changed.subject_id, changed.old_status, changed.new_status) == (
        "SPARK_JOB",
        "4",
        "RUNNING",
        "FAILED",
    )
    assert (changed.time, changed.source, changed.application_id, changed.detail) == (
        NOON,
        "driver UI",
        "local-1",
        "stage 4",
    )
    assert changed.exception == "password=*** is wrong"
    assert changed.application_ids == ("local-1",)
    assert (changed.lineage, changed.is_end, changed.is_kept) == (None, False, False)


@pytest.mark.parametrize(("subject", "known"), [("APPLICATION", ("local-1",)), ("DRIVER", ())])
def test_change_of_status_names_its_application(job_events: JobEvents, subject: Any, known: tuple[str, ...]) -> None:
    changed = job_events.changed(StatusTransition(subject, "local-1", None, "RUNNING", NOON, "event log"))
    assert changed.application_ids == known


@pytest.mark.parametrize(
    ("state", "status"), [("COMPLETE", "FINISHED"), ("FAIL", "FAILED"), ("ABORT", "KILLED"), ("RUNNING", "UNKNOWN")]
)
def test_a_task_ends(job_events: JobEvents, state: Any, status: str) -> None:
    ended = job_events.ended(state, LINEAGE, exception="token=hunter2")
    assert (ended.subject, ended.subject_id, ended.old_status, ended.new_status) == (
        "TASK",
        "orders.load",
        "RUNNING",
        status,
    )
    assert ended.lineage is not None
    assert ended.application_ids == ("local-1", "local-2")
    assert ended.is_kept
    assert "hunter2" not in str(ended)


@pytest.mark.parametrize(
    ("is_streaming", "known", "told"), [(True, "BATCH", "STREAMING"), (False, "STREAMING", "STREAMING")]
)
def test_a_task_whose_lineage_has_a_stream_was_one(
    job_events: JobEvents, is_streaming: bool, known: Any, told: str
) -> None:
    lineage = msgspec.structs.replace(LINEAGE, is_streaming=is_streaming)
    assert job_events.ended("COMPLETE", lineage, job_type=known).job_type == told


def test_a_task_ends_without_lineage(job_events: JobEvents) -> None:
    ended = job_events.ended("FAIL", None)
    assert (ended.lineage, ended.application_ids, ended.is_kept) == (None, (), True)


def test_changes_of_catalogs_name_the_applications(job_events: JobEvents) -> None:
    change = CatalogChange("DROP", "TABLE", DatasetName("file", "/wh/t"), "db.t", NOON)
    (event,) = job_events.catalog(msgspec.structs.replace(LINEAGE, catalog_changes=(change,)))
    assert (event.task, event.application_ids) == (job_events.task, ("local-1", "local-2"))


def test_events_go_through_json(job_events: JobEvents) -> None:
    for event in (job_events.created({"a": "b"}), job_events.ended("COMPLETE", LINEAGE)):
        text = msgspec.json.encode(event)
        assert msgspec.json.decode(text)["event"] == type(event).__name__
        assert msgspec.json.decode(text, type=JobCreatedEvent | JobExecutionStatusEvent) == event
