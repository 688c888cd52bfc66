"""What the dialects share: dialogues, states that are reported once, when they are asked again, and times."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dialogues import Canned

from spark_lineage.http_client import NoAnswerError, Request
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import Status, StatusLedger
from spark_lineage.watch import dialect
from spark_lineage.watch.dialect import Dialect, State, converse, converse_async, from_millis, get
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources, driver_end, kill_driver
from spark_lineage.watch.spark_api import time_of
from spark_lineage.watch.yarn import YarnResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def source() -> Dialect:
    made = Dialect(Endpoints("local", "client", {}), Driver())
    made.name = "master"
    return made


def state(status: Status, second: int = 0) -> State:
    return State(status, START + timedelta(seconds=second))


def told(source: Dialect, *way: State) -> list[tuple[str, int]]:
    reports = source.news("DRIVER", "driver-1", way, START + timedelta(seconds=99))
    return [(one.status, (one.time - START).seconds) for one in reports]


def test_what_a_thing_went_through_is_told_once(source: Dialect) -> None:
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3)) == [("SUBMITTED", 1), ("RUNNING", 3)]
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3)) == [("RUNNING", 3)]
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3), state("FINISHED", 5)) == [("FINISHED", 5)]


def test_what_was_missed_is_told(source: Dialect) -> None:
    assert told(source, state("SUBMITTED", 1)) == [("SUBMITTED", 1)]
    way = (state("SUBMITTED", 1), state("RUNNING", 3), state("FAILED", 5))
    assert told(source, *way) == [("RUNNING", 3), ("FAILED", 5)]
    last = source.last.get(("DRIVER", "driver-1"))
    assert last is not None
    assert last.status == "FAILED"
    assert source.last.get(("DRIVER", "driver-2")) is None


def test_a_second_attempt_runs_later_than_the_first(source: Dialect) -> None:
    told(source, state("RUNNING", 3))
    told(source, state("WAITING", 20))
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3)) == [("RUNNING", 99)]


def test_polls_make_each_transition_once(source: Dialect) -> None:
    ledger = StatusLedger()
    for _ in range(3):
        for one in source.news("DRIVER", "driver-1", [state("SUBMITTED", 1), state("RUNNING", 1)], START):
            ledger.add(one)
    assert [one.new_status for one in ledger.transitions] == ["SUBMITTED", "RUNNING"]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31T23:59:58.123GMT", datetime(2026, 1, 31, 23, 59, 58, 123000, UTC)),
        ("2026-01-31T23:59:58", None),
        ("Sat Jan 31", None),
        ("GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_times_as_text(text: str | None, time: datetime | None) -> None:
    assert time_of(text) == time


@pytest.mark.parametrize(("millis", "time"), [(1767225600000, START), (0, None), (-1, None), (None, None)])
def test_times_in_milliseconds(millis: int | None, time: datetime | None) -> None:
    assert from_millis(millis) == time


def synchronous(dialogue: Any, canned: Canned) -> Any:
    return converse(dialogue, canned.ask)


def asynchronous(dialogue: Any, canned: Canned) -> Any:
    async def ask(request: Request) -> bytes:
        await asyncio.sleep(0)
        return canned.ask(request)

    return asyncio.run(converse_async(dialogue, ask))


@pytest.mark.parametrize("run", [synchronous, asynchronous])
def test_converse_answers_and_throws_what_has_no_answer(run: Callable[..., Any]) -> None:
    def dialogue() -> Any:
        first = yield from get("http://h/a", dict[str, int])
        try:
            yield Request("http://h/gone", "DELETE")
        except NoAnswerError as error:
            first["gone"] = error.http_status or 0
        return first

    canned = Canned({"http://h/a": b'{"one": 1}'})
    assert run(dialogue(), canned) == {"one": 1, "gone": 404}
    assert [(one.method, one.url) for one in canned.requests] == [("GET", "http://h/a"), ("DELETE", "http://h/gone")]
    with pytest.raises(NoAnswerError, match="http://h/b answered HTTP 404"):
        run(get("http://h/b", Any), canned)


@pytest.mark.parametrize("run", [synchronous, asynchronous])
def test_dialects_need_no_server(run: Callable[..., Any]) -> None:
    endpoints = Endpoints("yarn", "cluster", {}, yarn_urls=["http://standby", "http://active"])
    manager = YarnResourceManager(endpoints, Driver(driver_id="application_1_0001"))
    answer = b'{"app": {"state": "RUNNING", "startedTime": 1000, "launchTime": 2000}}'
    canned = Canned({"http://active/ws/v1/cluster/apps/application_1_0001": answer})
    reports = run(manager.poll(), canned)
    assert [(one.subject, one.status) for one in reports[:2]] == [("DRIVER", "SUBMITTED"), ("DRIVER", "RUNNING")]
    assert manager.answered_url == "http://active"
    assert [one.url.partition("/ws")[0] for one in canned.requests] == ["http://standby", "http://active"]


@pytest.mark.parametrize("statuses", [(404, 503), (503, 404)])
def test_one_server_that_does_not_know_it_counts_whatever_the_others_do(statuses: tuple[int, int]) -> None:
    endpoints = Endpoints("yarn", "cluster", {}, yarn_urls=["http://a", "http://b"])
    manager = YarnResourceManager(endpoints, Driver(driver_id="application_1_0001"))
    urls = [f"{url}/ws/v1/cluster/apps/application_1_0001" for url in endpoints.yarn_urls]
    with pytest.raises(NoAnswerError) as told:
        converse(manager.poll(), Canned(dict(zip(urls, statuses, strict=True))).ask)
    assert told.value.http_status == 404


def test_an_end_is_found_and_a_driver_is_killed_at_the_first_server_that_answers() -> None:
    endpoints = Endpoints("spark://a:7077,b:7077", "cluster", {})
    managers = Sources(endpoints, Driver(driver_id="driver-1")).managers
    status, ledger = "http://b:6066/v1/submissions/status/driver-1", StatusLedger()
    canned = Canned({status: b'{"success": true, "driverState": "RUNNING"}'})
    assert converse(driver_end(managers, ledger), canned.ask) is None
    canned.answers[status] = b'{"success": true, "driverState": "FAILED", "message": "boo"}'
    end = converse(driver_end(managers, ledger), canned.ask)
    assert end is not None
    assert (end.status, end.exception) == ("FAILED", "boo")
    canned.requests.clear()
    with pytest.raises(NoAnswerError, match=r"404; .* 404"):
        converse(kill_driver(managers, "driver-1"), canned.ask)
    canned.answers["http://b:6066/v1/submissions/kill/driver-1"] = b"{}"
    converse(kill_driver(managers, "driver-1"), canned.ask)
    assert {one.method for one in canned.requests} == {"POST"}


@pytest.mark.parametrize("has_answered", [True, False])
def test_what_all_ask_at_once_is_asked_by_each_at_times_of_its_own(
    monkeypatch: pytest.MonkeyPatch, *, has_answered: bool
) -> None:
    monkeypatch.setattr(dialect, "time", SimpleNamespace(monotonic=lambda: 0.0))

    def waits() -> list[float]:
        random.seed(7)  # as a DAG file may, in each task's process
        made = Dialect(Endpoints("local", "client", {}), Driver())
        made.wait(10, 5)
        waits = [made.due]
        for _ in range(7):
            made.asked(5, has_answered=has_answered)
            waits.append(made.due)
        return waits

    each = [waits() for _ in range(50)]
    middle = [10, 1.5, 2.25, 3.375, 5, 5, 5, 5] if has_answered else [10, 3, 9, 27, 60, 60, 60, 60]
    for times, seconds in zip(zip(*each, strict=True), middle, strict=True):
        assert len(set(times)) == len(each)
        assert 0.8 * seconds <= min(times) < seconds < max(times) <= 1.2 * seconds


def test_a_source_is_left_alone_after_an_answer_for_as_long_as_it_says(
    monkeypatch: pytest.MonkeyPatch, source: Dialect
) -> None:
    monkeypatch.setattr(dialect, "time", SimpleNamespace(monotonic=lambda: 0.0))
    for least, longest in ((20.0, 24), (0.0, 6)):
        source.least_seconds = least
        source.asked(5, has_answered=True)
        assert 0.8 * least <= source.due <= longest
