"""A real master, worker, driver and History Server, told of by the sources."""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dialogues import polled
from standalone_cluster import StandaloneCluster, standalone_cluster

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusLedger, StatusReport, StatusSummary
from spark_lineage.settings import SettingError
from spark_lineage.supervision.health import ask_servers
from spark_lineage.supervision.history_server import SparkHistoryServerSensor
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def cluster(processes: Any, spark_env: dict[str, str]) -> Iterator[StandaloneCluster]:
    """A master that has one worker."""
    with standalone_cluster(processes.folder, spark_env) as cluster:
        yield cluster


@dataclass
class Observed:
    """What the sources said of one application."""

    sources: Sources
    known: Driver
    running: dict[str, list[StatusReport]] = field(default_factory=dict)
    again: dict[str, list[StatusReport]] = field(default_factory=dict)
    ended: dict[str, list[StatusReport]] = field(default_factory=dict)
    transitions: list[tuple[str, str, str]] = field(default_factory=list)
    progress: str = ""


@pytest.fixture(scope="module")
def observed(processes: Any, submit_python: Any, cluster: StandaloneCluster, history_server: str) -> Observed:
    """A driver in client mode that was asked twice while it ran, and when it had ended."""
    ready, released = processes.folder / "ready", processes.folder / "released"
    driver = submit_python(cluster.url, "observed.py", ready, released)
    port = processes.logged("driver", r"Successfully started service '?SparkUI'? on port (\d+)")
    application_id = processes.logged("driver", r"Connected to Spark cluster with app ID (app-[\w-]+)")
    processes.wait_for("the program", ready.exists, 120)

    extra = {"master_ui_url": cluster.ui_url, "history_server_url": history_server}
    known = Driver(application_id=application_id, ui_url=f"http://127.0.0.1:{port}")
    observed = Observed(Sources(Endpoints(cluster.url, "client", extra), known), known)
    ledger = StatusLedger()

    def answer_of(source: Any) -> list[StatusReport] | None:
        # The first answer of a UI may take longer than we wait, while its classes are loaded.
        with contextlib.suppress(NoAnswerError):
            return polled(source)
        return None

    def ask(sources: Any) -> dict[str, list[StatusReport]]:
        said = {one.name: processes.wait_for(one.name, lambda one=one: answer_of(one)) for one in sources}
        for report in (report for reports in said.values() for report in reports):
            if transition := ledger.add(report):
                thing = (transition.subject, transition.subject_id, transition.new_status)
                observed.transitions.append(thing)
        return said

    observed.running = ask(observed.sources.while_running)
    observed.progress = observed.sources.ui.progress
    observed.again = ask(observed.sources.while_running)
    released.touch()
    assert driver.wait(60) == 0, processes.log("driver")

    def has_ended() -> bool:
        observed.ended = ask(observed.sources.at_the_end)
        return "APPLICATION" in {one.subject for one in observed.ended["History Server"] if one.status == "FINISHED"}

    processes.wait_for("the end", has_ended, 30)
    return observed


def of(reports: list[StatusReport], subject: str) -> dict[str, list[str]]:
    statuses: dict[str, list[str]] = {}
    for report in reports:
        if report.subject == subject:
            statuses.setdefault(report.subject_id, []).append(report.status)
    return statuses


def test_the_application(observed: Observed) -> None:
    application_id = observed.known.application_id
    assert of(observed.running["driver UI"], "APPLICATION") == {application_id: ["RUNNING"]}
    assert of(observed.running["standalone master"], "APPLICATION") == {application_id: ["WAITING", "RUNNING"]}
    assert of(observed.ended["standalone master"], "APPLICATION") == {application_id: ["FINISHED"]}
    assert of(observed.ended["History Server"], "APPLICATION") == {application_id: ["RUNNING", "FINISHED"]}
    word = "FINISHED: it unregistered, which says nothing about the driver"
    assert [one.detail for one in observed.ended["standalone master"]] == [word]


def test_times_are_those_of_spark(observed: Observed) -> None:
    everything = [*observed.running.values(), *observed.ended.values()]
    times = [report.time for reports in everything for report in reports]
    assert {time.tzinfo for time in times} == {UTC}
    assert datetime.now(UTC) - timedelta(minutes=5) < min(times) <= max(times) <= datetime.now(UTC)
    reports = observed.running["driver UI"]
    jobs = [(one.status, one.time) for one in reports if one.subject == "SPARK_JOB" and one.subject_id == "0"]
    assert [status for status, _ in jobs] == ["RUNNING", "FINISHED"]
    assert jobs[0][1] < jobs[1][1]
    history = [one for one in observed.ended["History Server"] if one.subject == "SPARK_JOB" and one.subject_id == "0"]
    assert [(one.status, one.time) for one in history] == jobs


def test_a_job_that_failed_tells_why(observed: Observed) -> None:
    for name, reports in (("driver UI", observed.running), ("History Server", observed.ended)):
        failed = [one for one in reports[name] if one.status == "FAILED"]
        assert [one.subject for one in failed] == ["SPARK_JOB", "SQL_EXECUTION"]
        assert all("the moon is full" in one.exception for one in failed), failed


def test_all_executions_are_told(observed: Observed) -> None:
    for name, reports in (("driver UI", observed.running), ("History Server", observed.ended)):
        executions = of(reports[name], "SQL_EXECUTION")
        # 25, the failed one, and two for each micro-batch.
        assert len(executions) >= 25 + 1 + 4
        assert executions["0"] == ["RUNNING", "FINISHED"]
        assert {one.application_id for one in reports[name] if one.subject != "APPLICATION"} == {
            observed.known.application_id
        }


def test_streams(observed: Observed) -> None:
    reports = [one for one in observed.running["driver UI"] if one.subject == "STREAMING_QUERY"]
    assert {one.status for one in reports} == {"RUNNING"}
    (query,) = reports
    assert re.fullmatch(r"[0-9a-f-]{36}", query.subject_id)
    assert re.fullmatch(r"id = [0-9a-f-]{36}, batch = 0", query.detail)


def test_a_second_poll_repeats_no_history(observed: Observed) -> None:
    assert of(observed.again["standalone master"], "APPLICATION") == {observed.known.application_id: ["RUNNING"]}
    applications = [one for one in observed.transitions if one[0] == "APPLICATION"]
    assert [status for _, _, status in applications] == ["WAITING", "RUNNING", "FINISHED"]
    parts = [one for one in observed.transitions if one[0] != "APPLICATION"]
    assert len(set(parts)) == len(parts)


def test_progress(observed: Observed) -> None:
    assert re.fullmatch(r"\d+ of \d+ jobs done, 1 failed; \d+ of \d+ stages done", observed.progress)


def test_links_lead_somewhere(observed: Observed) -> None:
    links = observed.sources.linked(StatusSummary(), observed.known.application_id)
    assert (links.ui_url, links.logs_url) == (observed.known.ui_url, None)
    assert links.history_url is not None
    with urllib.request.urlopen(links.history_url, timeout=10) as page:  # noqa: S310 - the loopback
        assert "Spark Jobs" in page.read().decode()


def test_what_is_not_there(observed: Observed, cluster: StandaloneCluster) -> None:
    known = Driver(application_id="app-of-another", ui_url=observed.known.ui_url)
    endpoints = Endpoints(cluster.url, "client", {"master_ui_url": cluster.ui_url})
    master, ui = Sources(endpoints, known).while_running
    with pytest.raises(NoAnswerError, match="does not know app-of-another"):
        polled(master)
    with pytest.raises(NoAnswerError, match="Connection refused"):
        polled(ui)


def in_cluster_mode(cluster: StandaloneCluster, driver_id: str) -> Sources:
    extra = {"rest-port": cluster.rest_port, "master_ui_url": cluster.ui_url}
    return Sources(Endpoints(cluster.url, "cluster", extra), Driver(driver_id=driver_id))


@pytest.mark.parametrize(
    ("program", "status", "printed"),
    [
        (("org.apache.ivy.Main", "-version"), "FINISHED", "Apache Ivy"),
        (("org.apache.ivy.Main", "-no-such-option"), "FAILED", "Unrecognized option: -no-such-option"),
        (("no.such.Program",), "FAILED", "java.lang.ClassNotFoundException: no.such.Program"),
    ],
)
def test_drivers_in_cluster_mode(
    processes: Any, cluster: StandaloneCluster, program: tuple[str, ...], status: str, printed: str
) -> None:
    """The main classes are those of a jar of Spark's own."""
    import pyspark

    jar = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    driver_id = cluster.submit(jar, *program)
    sources = in_cluster_mode(cluster, driver_id)
    ways: dict[str, list[str]] = {}

    def have_ended() -> bool:
        for source in sources.at_the_end:
            for report in polled(source):
                assert (report.subject, report.subject_id) == ("DRIVER", driver_id)
                if ways.setdefault(source.name, [])[-1:] != [report.status]:
                    ways[source.name].append(report.status)
        return [way[-1] for way in ways.values()] == [status, status]

    processes.wait_for("the end of the driver", have_ended, 40)
    assert ways["standalone master"][0] == "SUBMITTED"
    log = sources.log_tail()
    assert set(log) == {"stderr", "stdout"}
    assert printed in "".join(log.values())
    assert not any(words in text for text in log.values() for words in ("==== Bytes", "Launch Command"))
    page = sources.linked(StatusSummary(), None).logs_url
    assert page is not None
    with urllib.request.urlopen(page, timeout=10) as answer:  # noqa: S310 - the loopback
        assert driver_id in answer.read().decode()


def test_an_unknown_driver(cluster: StandaloneCluster) -> None:
    for source in in_cluster_mode(cluster, "driver-none").at_the_end:
        with pytest.raises(NoAnswerError, match="does not know driver-none"):
            polled(source)


def test_the_health_of_the_servers(observed: Observed, cluster: StandaloneCluster, history_server: str) -> None:
    assert observed.ended
    extra = {"master_ui_url": cluster.ui_url, "history_server_url": history_server}
    master, history = ask_servers(Endpoints(cluster.url, "client", extra), time.time())
    assert (master.name, master.state, master.is_up, master.running) == ("standalone master", "ALIVE", True, 0)
    assert (history.name, history.is_up, history.running) == ("History Server", True, 0)
    assert history.state.startswith("Spark ")
    assert min(master.completed or 0, history.completed or 0) >= 1
    assert (history.missing, history.behind_seconds) == ([], 0)


def test_the_sensor_of_the_history_server(
    observed: Observed, history_server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connection = {"conn_type": "spark", "host": "local", "extra": {"history_server_url": history_server}}
    monkeypatch.setenv("AIRFLOW_CONN_MY_SPARK", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_CONN_ANOTHER", json.dumps({"conn_type": "spark", "host": "local"}))

    def poke(conn_id: str = "my_spark", **arguments: Any) -> bool:
        return SparkHistoryServerSensor(task_id="wait", conn_id=conn_id, **arguments).poke({})

    assert poke()
    assert poke(application_id=observed.known.application_id)
    assert not poke(application_id="app-of-another")
    with pytest.raises(SettingError, match="connection another has no history_server_url; set it"):
        poke("another")
    with pytest.raises(SettingError, match="application_id is empty"):
        poke(application_id="")
    closed = connection | {"extra": {"history_server_url": "http://127.0.0.1:9"}}
    monkeypatch.setenv("AIRFLOW_CONN_MY_SPARK", json.dumps(closed))
    assert not poke()
