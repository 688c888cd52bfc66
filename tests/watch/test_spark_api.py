"""Answers of ``/api/v1`` that a healthy driver does not give, or not at will."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dialogues import asked, polled

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import Accumulator, TaskNumbers
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.spark_api import DriverUi, HistoryServer

API = "/api/v1/applications"
START = 1_767_225_600_000


def time(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000GMT"


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)


def application(identifier: str = "app-1", *attempts: dict[str, Any]) -> dict[str, Any]:
    running = {"startTimeEpoch": START, "endTimeEpoch": -1, "completed": False, "sparkUser": "me"}
    return {"id": identifier, "name": "silver", "attempts": list(attempts) or [running]}


def job(number: int, status: str, **values: Any) -> dict[str, Any]:
    return {"jobId": number, "name": f"save {number}", "status": status, "stageIds": [number], **values}


def ui_at(url: str | None, application_id: str | None = None) -> DriverUi:
    return DriverUi(Endpoints("local", "client", {}), Driver(application_id, ui_url=url))


@pytest.fixture
def ui(loopback: Any) -> DriverUi:
    loopback.reply(API, json=[application()])
    loopback.reply(f"{API}/app-1/jobs", json=[])
    loopback.reply(f"{API}/app-1/sql", json=[])
    return ui_at(loopback.url)


def told(source: Any, subject: str) -> list[tuple[str, str, datetime]]:
    return [(one.subject_id, one.status, one.time) for one in polled(source) if one.subject == subject]


def test_nothing_is_asked_without_an_address() -> None:
    ui = ui_at(None)
    assert (polled(ui), ui.progress) == ([], "")


def test_an_application_that_does_nothing(ui: DriverUi) -> None:
    assert [(one.subject, one.status, one.time) for one in polled(ui)] == [("APPLICATION", "RUNNING", at(0))]
    assert ui.progress == ""


def test_an_application_that_is_still_to_begin(loopback: Any, ui: DriverUi) -> None:
    loopback.reply(API, json=[])
    assert polled(ui) == []


def test_jobs(loopback: Any, ui: DriverUi) -> None:
    jobs = [
        job(4, "DANCING"),
        job(3, "UNKNOWN"),
        job(2, "RUNNING", submissionTime=time(5), numCompletedStages=0, numSkippedStages=0),
        job(1, "SUCCEEDED"),
        job(0, "SUCCEEDED", submissionTime=time(1), completionTime=time(3), numCompletedStages=1),
    ]
    loopback.reply(f"{API}/app-1/jobs", json=jobs)
    reports = [one for one in polled(ui) if one.subject == "SPARK_JOB"]
    assert [(one.subject_id, one.status) for one in reports] == [
        ("0", "RUNNING"),
        ("0", "FINISHED"),
        ("1", "FINISHED"),
        ("2", "RUNNING"),
        ("3", "UNKNOWN"),
        ("4", "UNKNOWN"),
    ]
    assert [one.time for one in reports[:2]] == [at(1), at(3)]
    assert [one.detail for one in reports[3:]] == ["RUNNING: save 2", "UNKNOWN: save 3", "DANCING: save 4"]
    assert {one.application_id for one in reports} == {"app-1"}
    assert ui.progress == "2 of 5 jobs done; 1 of 5 stages done"


def test_why_jobs_failed_is_asked_once(loopback: Any, ui: DriverUi) -> None:
    loopback.reply(f"{API}/app-1/jobs", json=[job(1, "FAILED"), job(0, "FAILED")])
    loopback.reply(f"{API}/app-1/sql", json=[{"id": 0, "status": "FAILED", "failedJobIds": [0]}, {"id": 1}])
    failed = {one.subject: one for one in polled(ui) if one.status == "FAILED"}
    assert failed["SPARK_JOB"].exception == ""  # the stages did not answer
    stages = [{"stageId": 0, "failureReason": None}, {"stageId": 0, "failureReason": "No space left"}]
    loopback.reply(f"{API}/app-1/stages", json=stages)
    for _ in range(3):
        exceptions = [(one.subject, one.exception) for one in polled(ui) if one.status == "FAILED"]
        assert exceptions == [("SPARK_JOB", "No space left"), ("SPARK_JOB", ""), ("SQL_EXECUTION", "No space left")]
    assert loopback.paths.count(f"{API}/app-1/stages?status=failed") == 2


def test_executions(loopback: Any, ui: DriverUi) -> None:
    executions = [
        {"id": 0, "status": "COMPLETED", "submissionTime": time(1), "duration": 2000, "description": "count"},
        {"id": 1, "status": "FAILED", "submissionTime": time(1), "duration": 500, "errorMessage": "boo"},
        {"id": 2, "status": "RUNNING", "submissionTime": time(4), "duration": 77},
        {"id": 3, "status": "DANCING", "duration": -1},
    ]
    loopback.reply(f"{API}/app-1/sql", json=executions)
    assert told(ui, "SQL_EXECUTION")[:2] == [("0", "RUNNING", at(1)), ("0", "FINISHED", at(3))]
    last = {one.subject_id: one for one in polled(ui) if one.subject == "SQL_EXECUTION"}
    assert [one.status for one in last.values()] == ["FINISHED", "FAILED", "RUNNING", "UNKNOWN"]
    assert (last["1"].exception, last["2"].time, last["3"].detail) == ("boo", at(4), "DANCING")


def test_all_executions_are_asked_for_without_their_plans(loopback: Any, ui: DriverUi) -> None:
    loopback.reply(f"{API}/app-1/sql", json=[{"id": number, "status": "RUNNING"} for number in range(1200)])
    assert len(told(ui, "SQL_EXECUTION")) == 1200
    (query,) = (urlsplit(path).query for path in loopback.paths if "/sql?" in path)
    assert parse_qs(query) == {"details": ["false"], "planDescription": ["false"], "length": ["10000"]}


def test_micro_batches_are_told_as_their_query(loopback: Any, ui: DriverUi) -> None:
    def batch(number: int) -> str:
        return f"clicks\nid = a-1\nrunId = b-2\nbatch = {number}"

    jobs = [job(1, "RUNNING", description=batch(7), submissionTime=time(9)), job(0, "SUCCEEDED", description="x")]
    loopback.reply(f"{API}/app-1/jobs", json=jobs)
    loopback.reply(f"{API}/app-1/sql", json=[{"id": 0, "description": batch(6), "submissionTime": time(5)}])
    assert told(ui, "STREAMING_QUERY") == [("b-2", "RUNNING", at(5))]


def test_a_ui_that_closes_between_two_questions(loopback: Any, ui: DriverUi) -> None:
    loopback.reply(f"{API}/app-1/jobs", json=[job(0, "RUNNING")])
    loopback.reply(f"{API}/app-1/sql", status=500)
    assert told(ui, "SPARK_JOB")[0][:2] == ("0", "RUNNING")
    loopback.reply(f"{API}/app-1/jobs", status=500)
    with pytest.raises(NoAnswerError, match="HTTP 500"):
        polled(ui)


def test_a_port_that_another_application_took(loopback: Any) -> None:
    loopback.reply(API, json=[application("app-2")])
    ui = ui_at(loopback.url, "app-1")
    with pytest.raises(NoAnswerError, match="is the UI of app-2, not of app-1"):
        polled(ui)
    loopback.reply(API, json=[])
    with pytest.raises(NoAnswerError, match="is the UI of no application"):
        polled(ui)


def test_an_attempt_is_a_part_of_the_path(loopback: Any) -> None:
    loopback.reply(API, json=[application("app-1", {"attemptId": "2"})])
    loopback.reply(f"{API}/app-1/2/jobs", json=[job(0, "RUNNING")])
    ui = ui_at(loopback.url)
    assert [one.application_id for one in polled(ui)] == ["", "app-1/2"]


@pytest.mark.parametrize(
    "answer", [{}, [{"name": "no id"}], [{"id": 7}], [{"id": "app-1", "attempts": 7}], [[]], ["app-1"], None, 1]
)
def test_applications_of_another_shape(loopback: Any, answer: Any) -> None:
    loopback.reply(API, json=answer)
    with pytest.raises(NoAnswerError, match="another shape"):
        polled(ui_at(loopback.url))


def test_fields_without_values(loopback: Any, ui: DriverUi) -> None:
    loopback.reply(API, json=[{"id": "app-1", "attempts": None}])
    nothing = dict.fromkeys(("name", "description", "submissionTime", "completionTime", "stageIds", "status"))
    loopback.reply(f"{API}/app-1/jobs", json=[{"jobId": 0, **nothing}])
    loopback.reply(f"{API}/app-1/sql", json=[{"id": 0, "status": None, "submissionTime": "soon", "duration": 1}])
    assert [(one.subject, one.status) for one in polled(ui)] == [
        ("APPLICATION", "RUNNING"),
        ("SPARK_JOB", "UNKNOWN"),
        ("SQL_EXECUTION", "UNKNOWN"),
    ]


def history(loopback: Any, *attempts: dict[str, Any]) -> HistoryServer:
    loopback.reply(f"{API}/app-1", json=application("app-1", *attempts))
    return history_server(loopback)


def history_server(loopback: Any, application_id: str | None = "app-1") -> HistoryServer:
    endpoints = Endpoints("local", "client", {"history_server_url": loopback.url})
    return HistoryServer(endpoints, Driver(application_id))


def test_history_of_a_killed_application(loopback: Any) -> None:
    server = history(loopback)
    loopback.reply(f"{API}/app-1/jobs", json=[job(0, "RUNNING")])
    reports = polled(server)
    assert [(one.subject, one.status) for one in reports] == [("APPLICATION", "RUNNING"), ("SPARK_JOB", "RUNNING")]
    assert "not complete" in reports[0].detail


def test_history_of_two_attempts(loopback: Any) -> None:
    second = {"attemptId": "2", "startTimeEpoch": START + 5000, "endTimeEpoch": START + 9000, "completed": True}
    first = {"attemptId": "1", "startTimeEpoch": START, "endTimeEpoch": START + 4000, "completed": True}
    server = history(loopback, second, first)
    for attempt in "12":
        loopback.reply(f"{API}/app-1/{attempt}/jobs", json=[job(0, "SUCCEEDED")])
    reports = polled(server)
    assert [(one.status, one.time) for one in reports[:2]] == [("RUNNING", at(0)), ("FINISHED", at(9))]
    assert "says nothing about success" in reports[1].detail
    assert [one.application_id for one in reports[2:]] == ["app-1/1", "app-1/2"]
    assert server.driver.attempt_id == "2"


def test_history_that_is_not_there(loopback: Any) -> None:
    with pytest.raises(NoAnswerError, match="HTTP 404"):
        polled(history_server(loopback))
    assert polled(history_server(loopback, None)) == []
    loopback.reply(f"{API}/app-1", json={"id": "app-1"})
    assert polled(history_server(loopback)) == []


def stage(number: int, attempt: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "stageId": number,
        "attemptId": attempt,
        "completionTime": time(number + attempt),
        "numCompleteTasks": 4,
        "numFailedTasks": 1,
        "numKilledTasks": 2,
        "inputBytes": 1000,
        "outputBytes": 100,
        "memoryBytesSpilled": 30,
        "diskBytesSpilled": 3,
        "executorRunTime": 200,
        "jvmGcTime": 20,
        **values,
    }


def updated(identity: int, name: str | None, value: str) -> dict[str, Any]:
    return {"id": identity, "name": name, "update": None, "value": value}


def history_at(loopback: Any) -> HistoryServer:
    extra = {"history_server_url": loopback.url}
    return HistoryServer(Endpoints("yarn", "client", extra), Driver("app-1"))


def test_what_the_tasks_of_each_attempt_did(loopback: Any) -> None:
    attempts = [{"attemptId": "2", "completed": True}, {"attemptId": "1", "completed": True}]
    loopback.reply(f"{API}/app-1", json=application("app-1", *attempts))
    # The latest comes first; a stage that is run again is another attempt of it.
    stages = [
        stage(1, 1, accumulatorUpdates=[updated(9, "orders", "7"), updated(10, "orders", "1"), updated(11, None, "1")]),
        stage(1, 0, accumulatorUpdates=[updated(9, "orders", "5"), updated(12, "seen", "[a, b]")]),
        stage(0, accumulatorUpdates=[updated(9, "orders", "2"), updated(13, "amount", "0.5")]),
    ]
    loopback.reply(f"{API}/app-1/2/stages", json=stages)
    loopback.reply(f"{API}/app-1/1/stages", json=[stage(0, executorRunTime=0, jvmGcTime=0)])
    second, first = asked(history_at(loopback).numbers())
    assert second == TaskNumbers(
        *("app-1", "2", "History Server", 12, 3, 6, 3000, 300, 90, 9, 600, 60),
        accumulators=(Accumulator("amount", 0.5), Accumulator("orders", 8)),
    )
    assert (first.attempt_id, first.finished, first.gc_share) == ("1", 4, None)


def test_sums_of_which_a_part_was_forgotten_are_not_given(loopback: Any) -> None:
    loopback.reply(f"{API}/app-1", json=application())
    loopback.reply(f"{API}/app-1/stages", json=[stage(number) for number in range(7, 1007)])
    assert asked(history_at(loopback).numbers()) == []


@pytest.mark.parametrize("answer", [{"status": 404}, {"json": [{"stageId": 0, "inputBytes": "many"}]}, {"body": b"<"}])
def test_a_history_server_that_does_not_know_the_stages(loopback: Any, answer: dict[str, Any]) -> None:
    loopback.reply(f"{API}/app-1", json=application())
    loopback.reply(f"{API}/app-1/stages", **answer)
    extra = {"history_server_url": loopback.url}
    sources = Sources(Endpoints("yarn", "client", extra), Driver("app-1"))
    assert list(sources.numbers()) == []
