"""A line of JSON an event, whole, whoever else writes to the file."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spark_lineage.listeners.ndjson_listener import NdjsonListener
from spark_lineage.merge.lineage import CatalogChange, DatasetLineage, TaskLineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.job_events import JobEvents

ROOTS = [str(Path(__file__).parents[2] / root) for root in ("provider", "operators", "listeners")]
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
WRITER = """
import logging, sys
from spark_lineage.listeners.ndjson_listener import NdjsonListener
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.events import TaskRun
from spark_lineage.notify.job_events import JobEvents
path, name = sys.argv[1:]
context = ListenerContext(TaskRun(name, "t", "r"), {}, {"ndjson_listener_path": path}, None, None)
listener = NdjsonListener(context)
event = JobEvents(context.task, "ns", name).created({"big": name * 30_000})
for _ in range(200):
    listener.on_event(event)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "events.ndjson"


@pytest.fixture
def listener(context: ListenerContext, path: Path) -> NdjsonListener:
    return NdjsonListener(msgspec.structs.replace(context, options={"ndjson_listener_path": str(path)}))


def test_a_line_an_event(listener: NdjsonListener, path: Path, job_events: JobEvents) -> None:
    change = CatalogChange("DROP", "TABLE", DatasetName("s3://me:hunter2@lake", "t"), "db.t", NOON)
    foreign = (("sparkLineage_properties", msgspec.Raw(b'{"properties":{"team":"web"}}')),)
    output = DatasetLineage(change.dataset, foreign=foreign)
    lineage = TaskLineage("COMPLETE", outputs=(output,), catalog_changes=(change,))
    events: list[Any] = [job_events.created({"api.key": "hunter2"}), job_events.ended("COMPLETE", lineage)]
    for event in (*events, *job_events.catalog(lineage)):
        listener.on_event(event)
    text = path.read_text()
    created, ended, dropped = map(json.loads, text.splitlines())
    assert [line["event"] for line in (created, ended, dropped)] == [
        "JobCreatedEvent",
        "JobExecutionStatusEvent",
        "CatalogModificationEvent",
    ]
    assert created["task"] == {
        "dag_id": "orders",
        "task_id": "load",
        "run_id": "manual__1",
        "map_index": 3,
        "try_number": 2,
    }
    assert dropped["storage"]["properties"] == [["path", "t"], ["store", "s3://lake"]]
    written = ended["lineage"]["outputs"][0]
    assert written["dataset"]["name"] == "t"
    assert written["foreign"] == [["sparkLineage_properties", {"properties": {"team": "web"}}]]
    assert written["foreign_of_use"] == []
    assert not {"properties", "facets"} & written.keys()
    assert "hunter2" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("options", [{}, {"ndjson_listener_path": ""}, {"ndjson_listener_path": "here.ndjson"}])
def test_without_an_absolute_path_there_is_no_listener(context: ListenerContext, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="give an absolute path"):
        NdjsonListener(msgspec.structs.replace(context, options=options))


def test_processes_that_write_to_one_file_tear_no_line(path: Path, tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(ROOTS), "AIRFLOW_HOME": str(tmp_path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], env=env, stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    found = [json.loads(line)["configuration"]["big"] for line in path.read_text().splitlines()]
    assert sorted(found) == ["a" * 30_000] * 200 + ["b" * 30_000] * 200


def test_the_file_may_be_moved_away(listener: NdjsonListener, path: Path, job_events: JobEvents) -> None:
    listener.on_event(job_events.created({}))
    path.rename(path.with_suffix(".1"))
    listener.on_event(job_events.created({}))
    assert len(path.read_text().splitlines()) == 1


def test_half_a_character_is_written_as_its_escape(listener: NdjsonListener, path: Path, job_events: JobEvents) -> None:
    listener.on_event(job_events.created({"path": "/a\udcff"}))
    assert json.loads(path.read_text())["configuration"] == {"path": "/a\udcff"}


def test_a_full_disk_tears_no_line_but_its_own(listener: NdjsonListener, path: Path, job_events: JobEvents) -> None:
    listener.on_event(job_events.created({}))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="only 10 of"):
            listener.on_event(job_events.created({}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    listener.on_event(job_events.created({"after": "it"}))
    first, torn, last = path.read_text().splitlines()
    assert len(torn) == 10
    assert json.loads(first)["event"] == json.loads(last)["event"] == "JobCreatedEvent"
