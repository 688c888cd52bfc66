"""Event logs from a real History Server: recorded applications give the same lineage as from their files."""

from __future__ import annotations

import json
import logging
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from dialogues import http_connection
from recordings import recorded

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector, DirectoryCollector, FollowedEventLogs
from spark_lineage.submission.history_log import HistoryLogs
from spark_lineage.submission.log_mirror import CUT_OFF, LogMirror
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.spark_api import Application

LOG = logging.getLogger(__name__)
# Tables, streams, a failure in the second of two applications, Delta, and a driver that was killed.
JOBS = ("append_tables", "stream_many_batches", "fail_second_context", "delta_merge", "fail_killed")
RUN_ID = "spark.openlineage.applicationRunId"


def run_of(job: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, job))


def served(job: str, directory: Path) -> list[Path]:
    """Write the logs of a job, with what was not recorded of their environment, and return them."""
    for path in (recorded(job, "4.2") / "eventlog").iterdir():
        lines = path.read_bytes().splitlines(keepends=True)
        for at, line in enumerate(lines):
            if b"SparkListenerEnvironmentUpdate" in line:
                names = ("JVM Information", "Hadoop Properties", "Metrics Properties", "Classpath Entries")
                # As Spark writes it, its name is the first.
                event = json.loads(line) | {name: {} for name in names}
                event["Spark Properties"][RUN_ID] = run_of(job)
                lines[at] = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        # The server must not see a part of it.
        (directory / f".{path.name}").write_bytes(b"".join(lines))
        (directory / f".{path.name}").rename(directory / path.name)
    return sorted(directory.iterdir())


def lineage(collector: Collector) -> TaskLineage:
    return task_lineage(collector.state, "COMPLETE", has_actions=True)


@pytest.fixture(scope="module")
def endpoints(processes: Any, history_server: str) -> Endpoints:
    """Those of a History Server that has read the logs of all jobs."""
    for job in JOBS:
        paths = served(job, processes.folder / "events")
    ids = {path.name.removesuffix(".inprogress") for path in paths}
    endpoints = Endpoints("yarn", "cluster", {"history_server_url": history_server})
    url = f"{history_server}/api/v1/applications"

    def has_read_all() -> bool:
        with suppress(NoAnswerError):
            return ids <= {one.id for one in get_json(endpoints.client(), url, list[Application])}
        return False

    processes.wait_for("the applications", has_read_all, 60)
    return endpoints


def collected(endpoints: Endpoints, directory: Path, run_id: str, known: set[str]) -> DirectoryCollector:
    launch = Launch(str(directory / "dag" / "run" / "task" / "-1" / "launch"), run_id, event_logs=("hdfs://nn/logs",))
    collector = DirectoryCollector(Path(launch.directory), LOG)
    api = HistoryLogs(endpoints)
    bringing = LogMirror(launch, "history", collector, driver=Driver(logged_ids=tuple(known)), history=api, logger=LOG)
    bringing.finish(Deadline(4), is_missing=True)
    FollowedEventLogs(collector, lambda _: None, launch, copies=bringing.names).finish(Guard(lambda: False, LOG))
    return collector


@pytest.mark.spark
@pytest.mark.truth
@pytest.mark.parametrize(
    ("job", "is_known"), [*((job, True) for job in JOBS), ("append_tables", False), ("fail_second_context", False)]
)
def test_its_logs_give_the_same_lineage_as_the_files(
    endpoints: Endpoints, tmp_path: Path, job: str, is_known: bool
) -> None:
    files = Collector()
    (tmp_path / "files").mkdir()
    paths = served(job, tmp_path / "files")
    for path in paths:
        files.read_event_log(path)
    ids = {path.name.removesuffix(".inprogress") for path in paths}
    found = collected(endpoints, tmp_path, run_of(job), ids if is_known else set())
    assert lineage(found) == lineage(files)
    assert found.state.executions == files.state.executions
    assert found.counts.sources == {"history"}
    assert found.counts.set_aside == ({CUT_OFF: 1} if job == "fail_killed" else {})


@pytest.mark.spark
@pytest.mark.truth
def test_what_it_does_not_know_is_said(endpoints: Endpoints, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        found = collected(endpoints, tmp_path, "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", {"application_1_0001"})
    assert found.counts.set_aside == {CUT_OFF: 1}
    assert "/api/v1/applications/application_1_0001 answered HTTP 404" in caplog.text
    assert "has not come" in caplog.text


def test_a_file_that_is_too_large_or_too_late_is_not_taken(loopback: Any, tmp_path: Path) -> None:
    loopback.reply("/api/v1/applications/app-1/logs", body=b"x" * 300_000, content_type="application/octet-stream")
    api = HistoryLogs(Endpoints("yarn", "cluster", {"history_server_url": loopback.url}))
    with (tmp_path / "file").open("wb") as stream:
        api.download("app-1", stream, 300_000, lambda: False)
        with pytest.raises(NoAnswerError, match="answered more than"):
            api.download("app-1", stream, 299_999, lambda: False)
        with pytest.raises(NoAnswerError, match="took too long"):
            api.download("app-1", stream, 300_000, lambda: True)
    assert (tmp_path / "file").stat().st_size >= 300_000
    assert {headers["Accept"] for _, headers in loopback.asked} == {"*/*"}


def test_it_is_asked_as_the_connection_says_and_its_zip_is_checked(loopback: Any, tmp_path: Path) -> None:
    loopback.reply("/api/v1/applications/app-1", json={"id": "app-1", "attempts": [{"completed": True}]})
    loopback.reply("/api/v1/applications/app-1/logs", body=b"a login page", content_type="text/html")
    extra, connection = {"history_server_url": loopback.url}, http_connection(None, "hunter2")
    found = collected(Endpoints("yarn", "cluster", extra, connection), tmp_path, "run", {"app-1"})
    assert {headers["Authorization"] for _, headers in loopback.asked} == {"Bearer hunter2"}
    assert found.counts.set_aside == {CUT_OFF: 1}


PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(9).selectExpr("id", "id % 3 AS part").write.json(sys.argv[1] + "/nine")
spark.read.json(sys.argv[1] + "/nine").groupBy("part").count().write.parquet(sys.argv[1] + "/parts")
spark.stop()
"""


@pytest.mark.truth
@pytest.mark.spark
@pytest.mark.parametrize("collect", [pytest.param("event_log", marks=pytest.mark.nightly), "history"])
def test_a_task_says_the_same_whatever_its_log_is_collected_by(
    real_spark: Any, processes: Any, history_server: str, tmp_path: Path, collect: str
) -> None:
    program, home = tmp_path / "program.py", tmp_path / "home"
    program.write_text(PROGRAM)
    home.mkdir()
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (processes.folder / "events").as_uri()}
    real_spark.bench.connection["extra"] = {"history_server_url": history_server}
    before = {*(processes.folder / "events").iterdir()}
    outcome = real_spark.run(
        program, home, evidence="event_log", event_log_from=collect, conf=conf, lineage_required=True
    )
    assert outcome.error is None, outcome.printed
    assert outcome.names("outputs") == [str(home / "nine"), str(home / "parts")]
    facets = outcome.lineage["run_facets"]
    assert facets["sparkLineage_collection"]["collectedFrom"] == [collect]
    assert facets["sparkLineage_collection"]["setAside"] == {}
    source = {"event_log": "where it lies", "history": "the History Server"}[collect]
    assert f"the event log is collected from {source}" in outcome.printed
    assert not list(real_spark.bench.lineage_dir.rglob("event-log")), "copies go when they were read"
    assert len({*(processes.folder / "events").iterdir()} - before) == 1, "the user's own log stays"
