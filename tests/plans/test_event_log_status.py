"""What Spark's event log tells of the status of real applications, and of what runs in them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.merge.execution import LoggedApplication
from spark_lineage.merge.transition import StatusLedger, StatusReport
from spark_lineage.plans.event_log import EventLogReader, read_event_log

LOGS = Path(__file__).parents[1] / "fixtures" / "event_logs"
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def told(path: Path) -> list[StatusReport]:
    reports: list[StatusReport] = []
    assert list(read_event_log(path, report=reports.append))
    return reports


def reported(*events: dict[str, Any]) -> list[StatusReport]:
    reports: list[StatusReport] = []
    reader = EventLogReader(report=reports.append)
    for event in events:
        list(reader.add(json.dumps(event, separators=(",", ":")).encode()))
    return reports


@pytest.mark.parametrize("name", ["queries.zstd", "tables.zstd", "jdbc", "spark_359", "stream"])
def test_a_real_log_tells_the_way_of_its_application(name: str) -> None:
    reports = told(LOGS / name)
    application = [one for one in reports if one.subject == "APPLICATION"]
    assert {one.subject_id for one in application} == {application[0].subject_id}
    assert application[0].status == "RUNNING"
    assert {one.source for one in reports} == {"event log"}
    assert all(one.time.tzinfo is UTC and one.time.year >= 2020 for one in reports)
    times = [one.time for one in application]
    assert times == sorted(times)
    ledger = StatusLedger()
    for one in reports:
        ledger.add(one)
    executions = {status: count for subject, status, count in ledger.summed() if subject == "SQL_EXECUTION"}
    ids = {one.subject_id for one in reports if one.subject == "SQL_EXECUTION"}
    assert sum(executions.values()) == len(ids) > 0


def test_a_streaming_query_is_told_by_its_run() -> None:
    reports = told(LOGS / "stream")
    queries = Counter((one.subject_id, one.status) for one in reports if one.subject == "STREAMING_QUERY")
    started = {run for run, status in queries if status == "RUNNING"}
    assert started
    assert {run for run, _ in queries} == started


def test_a_streaming_query_has_the_name_that_the_program_gave_it() -> None:
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent"
    (query,) = reported({"Event": event, "runId": "r-1", "name": "hourly", "timestamp": "2026-01-01T12:00:00Z"})
    assert (query.subject, query.subject_id, query.status) == ("STREAMING_QUERY", "r-1", "RUNNING")
    assert (query.detail, query.time) == ("hourly", datetime(2026, 1, 1, 12, tzinfo=UTC))


START = {"Event": "SparkListenerApplicationStart", "App Name": "a", "App ID": "app-1", "Timestamp": 1767268800000}


def test_an_application_that_is_killed_has_no_end() -> None:
    (only,) = reported(START)
    assert (only.subject, only.subject_id, only.application_id, only.status) == ("APPLICATION", "app-1", "", "RUNNING")
    assert only.time == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_job_of_an_rdd_and_the_end_are_of_the_attempt() -> None:
    described: list[LoggedApplication] = []
    reader = EventLogReader(describe=described.append)
    scope = '{"id":"0","name":"saveAsTextFile"}'
    saving = {"Event": "SparkListenerJobStart", "Job ID": 7, "Properties": {"spark.rdd.scope": scope}}
    end = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1767268805000}
    events = (START | {"App Attempt ID": "2"}, saving, end)
    (job,) = [one for each in events for one in reader.add(json.dumps(each, separators=(",", ":")).encode())]
    assert (job.key, job.command) == (("app-1", "2", -8), "saveAsTextFile")
    assert [one.ended for one in described] == [None, 1767268805.0]


def test_the_end_of_a_context_is_no_success() -> None:
    _, end = reported(START, {"Event": "SparkListenerApplicationEnd", "Timestamp": 1767268805000, "ExitCode": 0})
    assert (end.status, end.detail, end.subject_id) == ("FINISHED", "context stopped", "app-1")


def test_parts_are_of_the_attempt_of_their_application() -> None:
    _, job = reported(START | {"App Attempt ID": "2"}, {"Event": "SparkListenerJobStart", "Job ID": 7})
    assert (job.subject, job.subject_id, job.application_id) == ("SPARK_JOB", "7", "app-1/2")


def test_a_job_fails_with_the_message_of_its_exception() -> None:
    failed = {"Result": "JobFailed", "Exception": {"Message": "x" * 100_000, "Stack Trace": [{"Declaring Class": "A"}]}}
    end = {"Event": "SparkListenerJobEnd", "Job ID": 7, "Completion Time": 1767268801500}
    _, good, bad = reported(START, end | {"Job Result": {"Result": "JobSucceeded"}}, end | {"Job Result": failed})
    assert (good.status, good.exception) == ("FINISHED", "")
    assert (bad.status, bad.exception) == ("FAILED", "x" * 64_000)
    assert bad.time == datetime(2026, 1, 1, 12, 0, 1, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(("exception", "status"), [(None, "FINISHED"), ("StreamingQueryException: no", "FAILED")])
def test_a_query_ends_when_the_log_last_told_a_time(exception: str | None, status: str) -> None:
    run = "0b9d5b0e-3f4c-4a55-9a43-5d1f6c4b2b11"
    _, start, end = reported(
        START,
        {"Event": f"{STREAMING}QueryStartedEvent", "id": "i", "runId": run, "timestamp": "2026-01-01T12:00:02.000Z"},
        {"Event": f"{STREAMING}QueryTerminatedEvent", "id": "i", "runId": run, "exception": exception},
    )
    assert (start.subject, start.subject_id, start.status) == ("STREAMING_QUERY", run, "RUNNING")
    assert (end.status, end.exception) == (status, exception or "")
    assert start.time == end.time == datetime(2026, 1, 1, 12, 0, 2, tzinfo=UTC)
