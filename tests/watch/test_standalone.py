"""Answers of masters that a real one does not give at will; ``test_real_spark`` asks a real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dialogues import polled

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusLedger
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.standalone import StandaloneMaster, StandaloneSubmissions

START = 1_767_225_600_000
STATUS = "/v1/submissions/status/driver-1"


def state(status: str = "ALIVE", **lists: Any) -> dict[str, Any]:
    """What a master 4.2 answers, without what nobody reads."""
    empty: dict[str, Any] = {"activeapps": [], "completedapps": [], "activedrivers": [], "completeddrivers": []}
    return {"url": "spark://a:7077", "workers": [], "status": status, **empty, **lists}


def app(word: str, **values: Any) -> dict[str, Any]:
    return {"id": "app-1", "starttime": START, "name": "silver", "state": word, "duration": 4000, **values}


def driver(word: str, **values: Any) -> dict[str, Any]:
    return {"id": "driver-1", "starttime": str(START), "state": word, "submitdate": "Thu Jan 01", **values}


def master(*urls: str, application_id: str | None = "app-1", driver_id: str | None = "driver-1") -> StandaloneMaster:
    endpoints = Endpoints("spark://a", "cluster", {"master_ui_url": ",".join(urls)})
    return StandaloneMaster(endpoints, Driver(application_id, driver_id))


def submissions(*urls: str, driver_id: str | None = "driver-1") -> StandaloneSubmissions:
    endpoints = Endpoints("spark://a", "cluster", {})
    endpoints.master_rest_urls = list(urls)
    return StandaloneSubmissions(endpoints, Driver(driver_id=driver_id))


def test_nothing_is_asked_without_an_id(loopback: Any) -> None:
    assert polled(master(loopback.url, application_id=None, driver_id=None)) == []
    assert polled(submissions(loopback.url, driver_id=None)) == []
    assert not loopback.asked


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("SUBMITTED", "SUBMITTED"),
        ("RUNNING", "RUNNING"),
        ("RELAUNCHING", "RELAUNCHING"),
        ("UNKNOWN", "UNKNOWN"),
        ("FINISHED", "FINISHED"),
        ("FAILED", "FAILED"),
        ("ERROR", "FAILED"),
        ("KILLED", "KILLED"),
        ("DANCING", "UNKNOWN"),
        (None, "UNKNOWN"),
    ],
)
def test_words_for_drivers(loopback: Any, word: str | None, status: str) -> None:
    loopback.reply("/json/", json=state(completeddrivers=[driver(word)], activedrivers=[driver("X", id="driver-2")]))
    assert [one.status for one in polled(master(loopback.url))][-1] == status
    if word is not None:
        loopback.reply(STATUS, json={"success": True, "driverState": word, "message": "boo", "workerId": "w"})
        (report,) = polled(submissions(loopback.url))
        assert (report.subject_id, report.status, report.detail, report.exception) == ("driver-1", status, word, "boo")


def test_the_way_of_an_application(loopback: Any) -> None:
    source, ledger = master(loopback.url), StatusLedger()
    for lists in (
        {"activeapps": [app("WAITING")]},
        {"activeapps": [app("RUNNING")]},
        {"activeapps": [app("RUNNING")]},
        {"completedapps": [app("FAILED")]},
    ):
        loopback.reply("/json/", json=state(**lists))
        for report in polled(source):
            ledger.add(report)
    assert [one.new_status for one in ledger.transitions] == ["WAITING", "RUNNING", "FAILED"]
    assert [(ledger.transitions[at].time.timestamp() - START / 1000) for at in (0, 2)] == [0, 4]


def test_what_a_master_that_recovers_does_not_know_yet_has_not_begun_anew(loopback: Any) -> None:
    loopback.reply("/json/", json=state(activeapps=[app("UNKNOWN")]))
    assert [one.status for one in polled(master(loopback.url))] == ["UNKNOWN"]


def test_a_driver_that_is_relaunched(loopback: Any) -> None:
    source, ledger = master(loopback.url, application_id=None), StatusLedger()
    for word in ("SUBMITTED", "RUNNING", "RELAUNCHING", "RUNNING", "KILLED"):
        loopback.reply("/json/", json=state(activedrivers=[driver(word)]))
        for report in polled(source):
            ledger.add(report)
    told = [one.new_status for one in ledger.transitions]
    assert told == ["SUBMITTED", "RUNNING", "RELAUNCHING", "RUNNING", "KILLED"]


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_the_master_that_is_alive_is_believed(loopbacks: Callable[[], Any], order: slice) -> None:
    standby, alive, gone = loopbacks(), loopbacks(), loopbacks()
    standby.reply("/json/", json=state("STANDBY", completedapps=[app("KILLED")]))
    alive.reply("/json/", json=state(activeapps=[app("RUNNING")]))
    standby.reply(STATUS, json={"success": False, "message": "Exception from the cluster: not alive: STANDBY"})
    alive.reply(STATUS, json={"success": True, "driverState": "RUNNING"})
    urls = [gone.url, standby.url, alive.url][order]
    assert polled(master(*urls))[-1].status == "RUNNING"
    assert polled(submissions(*urls))[-1].status == "RUNNING"


def test_no_master_is_alive(loopbacks: Callable[[], Any]) -> None:
    standby, gone = loopbacks(), loopbacks()
    standby.reply("/json/", json=state("RECOVERING"))
    standby.reply(STATUS, json={"success": False})
    with pytest.raises(NoAnswerError, match=r"is RECOVERING, not ALIVE; .* HTTP 404"):
        polled(master(standby.url, gone.url))
    with pytest.raises(NoAnswerError, match=r"does not know driver-1; .* HTTP 404"):
        polled(submissions(standby.url, gone.url))


def test_a_master_that_knows_neither(loopback: Any) -> None:
    loopback.reply("/json/", json=state(activeapps=[]))
    with pytest.raises(NoAnswerError, match="does not know driver-1 or app-1"):
        polled(master(loopback.url))


@pytest.mark.parametrize("answer", [[], {"status": "ALIVE", "activeapps": {}}, {"status": "ALIVE", "activeapps": [{}]}])
def test_what_is_no_answer(loopback: Any, answer: Any) -> None:
    loopback.reply("/json/", json=answer)
    with pytest.raises(NoAnswerError, match="another shape"):
        polled(master(loopback.url))
