"""Plans that the UI of a running driver gives, page by page, beside what its event log says of the same executions."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import structs

from spark_lineage.collect.collector import Collector
from spark_lineage.collect.driver_ui import UiCollector
from spark_lineage.merge.lineage import Statistics
from spark_lineage.merge.task import task_lineage
from spark_lineage.watch import sql_log
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import RestClient
from spark_lineage.watch.source import Known
from spark_lineage.watch.spark_api import DriverUi
from spark_lineage.watch.sql_log import SqlLog

if TYPE_CHECKING:
    from spark_lineage.merge.execution import Execution
    from spark_lineage.merge.state import LineageState

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sql"
ANSWERS = json.loads((FIXTURES / "answers.json").read_text())
ALL = ANSWERS["sql"]
APPLICATION_ID = ANSWERS["application"]["id"]
API = "/api/v1/applications"


class Driver:
    """A driver's UI; ``plans`` are the first execution and the length of each page with plans that was asked for."""

    def __init__(self, loopback: Any) -> None:
        self.executions = ALL
        self.plans: list[tuple[int, int]] = []
        self.largest = 1000
        """The longest page that it gives."""
        loopback.reply(API, json=[ANSWERS["application"]])
        loopback.reply(f"{API}/{APPLICATION_ID}/jobs", json=[])
        loopback.reply(f"{API}/{APPLICATION_ID}/environment", json=ANSWERS["environment"])
        self._reply = type(loopback.replies[API])
        loopback.replies[f"{API}/{APPLICATION_ID}/sql"] = self._sql
        known = Known(APPLICATION_ID, ui_url=loopback.url)
        self.ui = DriverUi(RestClient(timeout_seconds=1), Endpoints("local", "client", {}), known)
        self.log = self.ui.sql_log = SqlLog()
        self.collector = UiCollector(self.log, Collector(), 3600, logging.getLogger(__name__))

    def _sql(self, path: str) -> Any:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        first, length = int(asked.get("offset", 0)), int(asked["length"])
        page = self.executions[first : first + length]
        if asked["planDescription"] == "true":
            self.plans.append((first, length))
            return self._reply(status=500) if length > self.largest else self._reply(json=page)
        return self._reply(json=[{**one, "planDescription": "", "nodes": []} for one in page])

    def poll(self) -> None:
        """Ask it for its status, which it gives whatever its plans are."""
        assert any(report.subject == "APPLICATION" for report in self.ui.poll())

    def read(self) -> LineageState:
        """Want what is new, and return what is known when all has come."""
        self.log.is_wanted = True
        for _ in ALL:
            if self.log.is_wanted:
                self.poll()
        self.collector.poll()
        self.log.is_wanted = False
        return self.collector.state


@pytest.fixture
def driver(loopback: Any) -> Driver:
    """One that has done all."""
    return Driver(loopback)


def logged() -> dict[int, Execution]:
    """What the event log of the same application says."""
    collector = Collector()
    collector.read_event_log(FIXTURES / "event_log")
    return by_number(collector.state)


def by_number(state: LineageState) -> dict[int, Execution]:
    return {one.execution_id: without_sizes(one) for one in state.executions.values()}


def without_sizes(one: Execution) -> Execution:
    """Return an execution without bytes, which the API rounds."""
    numbers = [each.statistics or Statistics() for each in one.outputs]
    outputs = [
        structs.replace(each, statistics=each.statistics and structs.replace(number, size=None))
        for each, number in zip(one.outputs, numbers, strict=True)
    ]
    return structs.replace(one, outputs=tuple(outputs))


def at(millis: int) -> list[Any]:
    """Return the executions as they were at a time."""
    found = []
    for one in ALL:
        start = sql_log.time_of(one["submissionTime"])
        assert start is not None
        begun = round(start.timestamp() * 1000)
        if begun <= millis < begun + one["duration"]:
            found.append({**one, "status": "RUNNING", "duration": millis - begun, "successJobIds": [], "nodes": []})
        elif begun <= millis:
            found.append(one)
    return found


def ends() -> list[int]:
    starts = [(sql_log.time_of(one["submissionTime"]), one["duration"]) for one in ALL]
    return sorted(round(start.timestamp() * 1000) + duration for start, duration in starts if start is not None)


def test_it_says_what_the_event_log_says(driver: Driver) -> None:
    assert by_number(driver.read()) == logged()
    lineage = task_lineage(driver.collector.state, "RUNNING")
    assert lineage.evidence == ("driver_ui",)
    assert {column.name for one in lineage.inputs for column in one.schema} >= {"customer", "name"}
    (application,) = lineage.applications
    assert (application.application_id, application.spark_version) == (APPLICATION_ID, "4.2.0")


def test_what_is_read_in_between_changes_nothing_and_is_asked_for_once(driver: Driver) -> None:
    """One that runs is asked for when it is seen, and when it has ended; then never again."""
    whole = logged()
    for millis in [*(end - 1 for end in ends()), max(ends())]:
        driver.executions = at(millis)
        known = by_number(driver.read())
        assert known == {number: whole[number] for number in known}, "nothing counts before it has ended"
    assert known == whole
    asked = len(driver.plans)
    driver.read()
    assert len(driver.plans) == asked


def test_nothing_is_asked_for_that_nobody_wants(driver: Driver) -> None:
    driver.poll()
    assert (driver.plans, list(driver.log.lines)) == ([], [])


def test_pages_are_read_and_an_end_waits_for_what_is_inside_of_it(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_log, "_PAGES", 1)
    driver.log._length = 3
    driver.log.is_wanted = True
    driver.poll()
    driver.collector.poll()
    assert driver.plans == [(0, 3)]
    assert driver.log.is_wanted
    assert by_number(driver.collector.state) == {}
    assert by_number(driver.read()) == logged()


def test_answers_that_are_refused_are_asked_for_in_smaller_pages_when_they_are_wanted_again(driver: Driver) -> None:
    driver.largest = 20
    assert driver.read().executions == {}
    assert driver.plans == [(0, 32)]
    assert by_number(driver.read()) == logged()
    assert driver.plans[1] == (0, 16)


def test_of_an_older_spark_each_is_part_of_the_one_in_whose_time_it_runs(driver: Driver) -> None:
    assert any(one["rootExecutionId"] != one["id"] for one in ALL)
    driver.executions = [
        {key: value for key, value in one.items() if key not in {"rootExecutionId", "errorMessage"}} for one in ALL
    ]
    # It does not give the text of an error.
    found = {number: structs.replace(one, error="failed" if one.error else "") for number, one in logged().items()}
    assert by_number(driver.read()) == found


def test_of_an_older_spark_with_threads_nothing_is_said(driver: Driver) -> None:
    first, second = ({key: one[key] for key in one if key != "rootExecutionId"} for one in ALL[:2])
    driver.executions = [first, {**second, "submissionTime": first["submissionTime"], "duration": 1_000_000}]
    driver.read()
    assert driver.log.why_not.startswith("executions overlap")
    assert driver.plans == []
    assert driver.collector.poll() is not driver.collector


def test_of_a_program_with_a_streaming_query_nothing_is_said(driver: Driver) -> None:
    driver.read()
    asked = len(driver.plans)
    assert driver.collector.poll() is driver.collector
    batch = "id = 0b1f-4\nrunId = 77aa-3\nbatch = 0"
    driver.executions = [*ALL, {**ALL[0], "id": 99, "description": batch, "rootExecutionId": 99}]
    driver.read()
    assert "a streaming query" in driver.log.why_not
    assert len(driver.plans) == asked
    assert driver.collector.poll() is not driver.collector


def test_what_is_part_of_an_unknown_execution_is_left_out(driver: Driver) -> None:
    nested = next(one for one in ALL if one["rootExecutionId"] != one["id"])
    driver.executions = [one for one in ALL if one["id"] != nested["rootExecutionId"]]
    assert nested["id"] not in by_number(driver.read())
