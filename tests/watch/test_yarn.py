from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from dialogues import polled

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusLedger
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.yarn import YarnResourceManager

ID = "application_1700000000000_0001"
PATH = f"/ws/v1/cluster/apps/{ID}"
START = 1_700_000_000_000


def app(state: str, final_status: str = "UNDEFINED", **values: Any) -> dict[str, Any]:
    """What a ResourceManager 3.4.2 answers, without what nobody reads."""
    times = {"startedTime": START, "launchTime": 0, "finishedTime": 0, "elapsedTime": 4711}
    other = {"user": "airflow", "name": "silver", "queue": "default", "progress": 0.0, "trackingUI": "UNASSIGNED"}
    return {
        "app": {"id": ID, "state": state, "finalStatus": final_status, "diagnostics": "", **times, **other, **values}
    }


def manager(*urls: str, deploy_mode: Any = "cluster", application_id: str | None = ID) -> YarnResourceManager:
    endpoints = Endpoints("yarn", deploy_mode, {"yarn_resourcemanager_webapp_address": ",".join(urls)})
    return YarnResourceManager(endpoints, Driver(application_id))


def told(source: YarnResourceManager, subject: str = "DRIVER") -> list[tuple[str, float | None]]:
    """The statuses of a poll, each with the seconds since the start, None for the time at which it was asked."""
    reports = [one for one in polled(source) if one.subject == subject]
    assert {one.subject_id for one in reports} <= {ID}
    seconds = [one.time.timestamp() - START / 1000 for one in reports]
    return [(one.status, second if second < 100 else None) for one, second in zip(reports, seconds, strict=True)]


def test_nothing_is_asked_without_an_id(loopback: Any) -> None:
    assert polled(manager(loopback.url, application_id=None)) == []
    assert not loopback.asked


def test_the_way_of_an_application(loopback: Any) -> None:
    source = manager(loopback.url)
    ledger = StatusLedger()
    answers = [
        app("NEW"),
        app("NEW_SAVING"),
        app("SUBMITTED"),
        app("ACCEPTED"),
        app("RUNNING", launchTime=START + 2000),
        app("RUNNING", launchTime=START + 2000),
        app("FINISHED", "SUCCEEDED", launchTime=START + 2000, finishedTime=START + 9000),
    ]
    for answer in answers:
        loopback.reply(PATH, json=answer)
        for report in polled(source):
            ledger.add(report)
    ways = {
        subject: [one.new_status for one in ledger.transitions if one.subject == subject]
        for subject in ("DRIVER", "APPLICATION")
    }
    assert ways["DRIVER"] == ways["APPLICATION"] == ["SUBMITTED", "WAITING", "RUNNING", "FINISHED"]


def test_an_application_that_was_not_seen_before(loopback: Any) -> None:
    loopback.reply(PATH, json=app("FINISHED", "SUCCEEDED", launchTime=START + 2000, finishedTime=START + 9000))
    source = manager(loopback.url)
    assert told(source) == [("SUBMITTED", 0), ("RUNNING", 2), ("FINISHED", 9)]
    assert told(source) == [("FINISHED", 9)]


@pytest.mark.parametrize(
    ("state", "final_status", "status"),
    [
        ("FINISHED", "SUCCEEDED", "FINISHED"),
        ("FINISHED", "FAILED", "FAILED"),
        ("FINISHED", "KILLED", "KILLED"),
        ("FINISHED", "ENDED", "UNKNOWN"),
        ("FINISHED", "UNDEFINED", "UNKNOWN"),
        ("FAILED", "FAILED", "FAILED"),
        ("KILLED", "KILLED", "KILLED"),
        ("DANCING", "UNDEFINED", "UNKNOWN"),
    ],
)
def test_how_a_driver_ends(loopback: Any, state: str, final_status: str, status: str) -> None:
    loopback.reply(PATH, json=app(state, final_status, diagnostics="Exception in User Class\n", finishedTime=START + 1))
    last = [one for one in polled(manager(loopback.url)) if one.subject == "DRIVER"][-1]
    assert last.status == status
    assert last.exception == ("Exception in User Class" if status in ("FAILED", "KILLED") else "")
    assert state in last.detail


def test_a_client_mode_success_says_nothing(loopback: Any) -> None:
    loopback.reply(PATH, json=app("FINISHED", "SUCCEEDED", finishedTime=START + 9000))
    reports = polled(manager(loopback.url, deploy_mode="client"))
    assert {one.subject for one in reports} == {"APPLICATION"}
    assert reports[-1].detail == "FINISHED, finalStatus SUCCEEDED, which says nothing about the program in client mode"


def test_a_second_attempt(loopback: Any) -> None:
    source = manager(loopback.url)
    seen = []
    for answer in (app("RUNNING", launchTime=START + 2000), app("ACCEPTED", launchTime=START + 2000)) * 2:
        loopback.reply(PATH, json=answer)
        seen += told(source)
    assert seen == [("SUBMITTED", 0), ("RUNNING", 2), ("WAITING", None), ("RUNNING", None), ("WAITING", None)]


def test_links(loopback: Any) -> None:
    source = manager(loopback.url)
    running = {"trackingUrl": f"{loopback.url}/proxy/{ID}/", "amContainerLogs": "http://nm:8042/node/containerlogs/c"}
    for answer, expected in [
        (app("ACCEPTED", trackingUrl="UNASSIGNED"), (None, None)),
        (app("RUNNING", trackingUrl=None), (None, None)),
        (app("RUNNING", **running), (f"{loopback.url}/proxy/{ID}", running["amContainerLogs"])),
        # After the end the proxy redirects to a page for people.
        (
            app("FINISHED", "SUCCEEDED", amContainerLogs=None),
            (f"{loopback.url}/proxy/{ID}", running["amContainerLogs"]),
        ),
    ]:
        loopback.reply(PATH, json=answer)
        polled(source)
        assert (source.driver.proxied_ui_url, source.driver.logs_url) == expected


def test_a_standby_is_passed_over(loopbacks: Callable[[], Any]) -> None:
    standby, active = loopbacks(), loopbacks()
    active.reply(PATH, json=app("ACCEPTED"))
    words = f"This is standby RM. The redirect url is: {active.url}{PATH}\n".encode()
    for answer in (
        {"status": 307, "headers": {"Location": f"{active.url}{PATH}"}, "body": words},
        {"status": 307, "headers": {"Refresh": f"6;url={standby.url}{PATH}"}, "body": b"Can not find any active RM."},
        {"body": words, "content_type": "text/plain"},
    ):
        standby.reply(PATH, **answer)
        assert told(manager(standby.url, active.url)) == [("SUBMITTED", 0), ("WAITING", None)]


@pytest.mark.parametrize(
    "answer",
    [{}, {"app": None}, {"app": {}}, {"app": {"state": 7}}, {"app": [1]}, [], {"app": ID}],
)
def test_what_is_no_answer(loopback: Any, answer: Any) -> None:
    loopback.reply(PATH, json=answer)
    with pytest.raises(NoAnswerError, match=re.escape(loopback.url)):
        polled(manager(loopback.url))


def test_all_that_is_missing_is_told(loopbacks: Callable[[], Any]) -> None:
    first, second = loopbacks(), loopbacks()
    with pytest.raises(NoAnswerError, match=f"{first.url}.* HTTP 404; {second.url}.* HTTP 404"):
        polled(manager(first.url, second.url))
    with pytest.raises(NoAnswerError, match="no address"):
        polled(manager())


def test_who_reads_the_log_takes_no_status_from_who_watches_it(loopback: Any) -> None:
    loopback.reply(PATH, json=app("RUNNING", launchTime=START + 2000))
    sources = Sources(Endpoints("yarn", "cluster", {}, yarn_urls=[loopback.url]), Driver(driver_id=ID))
    with pytest.raises(NoAnswerError, match="does not say where the driver's log is"):
        list(sources.added(is_last=False))
    statuses = [one.status for one in polled(sources.managers[0]) if one.subject == "DRIVER"]
    assert statuses == ["SUBMITTED", "RUNNING"]
