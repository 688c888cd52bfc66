"""The watch of one launch: what is told at its end, and that nothing holds it up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from spark_lineage.merge.task_numbers import TaskNumbers
from spark_lineage.merge.transition import StatusReport, StatusTransition
from spark_lineage.watch import task_watch
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.source import Known
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.task_watch import TaskWatch

LIMIT_SECONDS = 30
NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = SimpleNamespace(debug=lambda *_, **__: None, info=lambda *_, **__: None, warning=lambda *_, **__: None)


class Source:
    name, first_seconds, least_seconds = "standalone master", 1.0, 0.0

    def __init__(self, *answers: Any) -> None:
        self.answers = answers

    def poll(self) -> Iterable[StatusReport]:
        for answer in self.answers:
            if isinstance(answer, threading.Event):
                answer.wait(60)
            elif isinstance(answer, Exception):
                raise answer
            else:
                yield answer


def watched(directory: Path, *at_the_end: Source, deploy_mode: str = "client") -> tuple[TaskWatch, list[Any]]:
    told: list[StatusTransition] = []
    sources = Sources(Endpoints("local[2]", "client", {}), Known())
    sources.at_the_end = at_the_end
    watch = TaskWatch(
        sources, directory, deploy_mode=deploy_mode, interval_seconds=5, on_transition=told.append, logger=QUIET
    )
    return watch, told


def watching(directory: Path, known: Known) -> tuple[TaskWatch, list[StatusTransition]]:
    """Watch a driver's UI, which is asked after a second, and then often."""
    told: list[StatusTransition] = []
    sources = Sources(Endpoints("local[2]", "client", {}), known)
    watch = TaskWatch(
        sources, directory, deploy_mode="client", interval_seconds=0.05, on_transition=told.append, logger=QUIET
    )
    watch.start()
    return watch, told


def until(what: str, found: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not found():
        assert time.monotonic() < deadline, f"Waited {LIMIT_SECONDS} s for {what}"
        time.sleep(0.01)


def show(ui: Any, application_id: str, *jobs: str) -> str:
    """Have a server be the UI of an application with these SparkJobs, and give its address."""
    ui.reply("/api/v1/applications", json=[{"id": application_id, "attempts": [{"startTimeEpoch": 1000}]}])
    path = f"/api/v1/applications/{application_id}/jobs"
    ui.reply(path, json=[{"jobId": number, "status": status} for number, status in enumerate(jobs)])
    return str(ui.url)


def statuses(told: list[StatusTransition]) -> list[tuple[str, str, str]]:
    return [(one.subject, one.subject_id, one.new_status) for one in told]


def test_a_source_that_hangs_or_is_at_fault_does_not_hold_up_the_end(tmp_path: Path) -> None:
    late = threading.Event()
    report = StatusReport("APPLICATION", "app-1", "FINISHED", NOW, "standalone master")
    watch, told = watched(tmp_path, Source(OverflowError()), Source(report), Source(late, report))
    watch.ask_at_the_end(0.3)
    assert statuses(told) == [("APPLICATION", "app-1", "FINISHED")]
    late.set()


def test_a_source_that_hangs_does_not_hold_up_the_stop(loopback: Any, tmp_path: Path) -> None:
    loopback.reply("/api/v1/applications", json=[], seconds=3)
    watch, told = watching(tmp_path, Known(ui_url=loopback.url))
    until("the question", lambda: loopback.asked)
    began = time.monotonic()
    watch.stop()
    assert time.monotonic() - began < 1
    assert told == []


def test_an_answer_that_comes_too_late_is_not_told(tmp_path: Path) -> None:
    late = threading.Event()
    watch, told = watched(tmp_path, Source(late, StatusReport("APPLICATION", "app-1", "FAILED", NOW, "x")))
    watch.ask_at_the_end(0.1)
    late.set()
    time.sleep(0.2)
    assert told == []


def test_in_client_mode_an_application_ends_with_its_driver_whoever_told_of_it(tmp_path: Path) -> None:
    watch, told = watched(tmp_path)
    watch.submitted("host:1")
    watch.log.tell(StatusReport("APPLICATION", "local-1", "RUNNING", NOW, "driver UI"))
    watch.ended("FAILED", 1, "ValueError: no", {"local-2"})
    assert statuses(told)[2:] == [
        ("DRIVER", "host:1", "FAILED"),
        ("APPLICATION", "local-1", "FAILED"),
        ("APPLICATION", "local-2", "FAILED"),
    ]
    assert (told[2].detail, told[2].exception) == ("exit code 1", "ValueError: no")
    watch.kill_asked("too late")
    assert len(told) == 5


def test_in_cluster_mode_it_does_so_when_the_cluster_says_that_the_driver_has_ended(tmp_path: Path) -> None:
    watch, told = watched(tmp_path, deploy_mode="cluster")
    watch.submitted("ns:pod")
    watch.log.tell(StatusReport("APPLICATION", "spark-1", "RUNNING", NOW, "driver UI"))
    watch.ended("KILLED", None, "", {"spark-1"})
    assert statuses(told)[1:] == [("APPLICATION", "spark-1", "RUNNING")], "the driver may still run"
    watch.log.tell(StatusReport("DRIVER", "ns:pod", "FAILED", NOW, "Kubernetes", detail="OOMKilled"))
    watch.ended("FAILED", None, "", {"spark-1", "spark-2"})
    assert statuses(told)[3:] == [("APPLICATION", "spark-1", "FAILED"), ("APPLICATION", "spark-2", "FAILED")]
    assert (told[-1].source, told[-1].detail) == ("Airflow", "the driver has ended")


@pytest.mark.parametrize(("status", "last"), [("FINISHED", "FINISHED"), ("FAILED", "UNKNOWN"), ("KILLED", "SUBMITTED")])
def test_in_cluster_mode_only_the_cluster_knows_that_a_driver_has_failed(
    tmp_path: Path, status: Any, last: str
) -> None:
    watch, told = watched(tmp_path, deploy_mode="cluster")
    watch.submitted("driver-1")
    watch.ended(status, None, "lost", set())
    assert statuses(told)[-1] == ("DRIVER", "driver-1", last)


def test_what_the_cluster_says_of_a_failed_driver_is_its_error(tmp_path: Path) -> None:
    watch, _ = watched(tmp_path, deploy_mode="cluster")
    watch.submitted("driver-1")
    assert (watch.driver_status, watch.driver_error) == ("SUBMITTED", "")
    watch.log.tell(StatusReport("DRIVER", "driver-1", "FAILED", NOW, "Kubernetes", detail="OOMKilled"))
    watch.ended("FAILED", None, "", set())
    assert (watch.driver_status, watch.driver_error) == ("FAILED", "OOMKilled (Kubernetes)")


def test_a_ui_is_followed_to_another_port_and_told_of_once(
    loopbacks: Callable[[], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "spark_lineage.watch.sources")
    first, second, third = loopbacks(), loopbacks(), loopbacks()
    known = Known("local-1", ui_url=show(first, "local-1", "SUCCEEDED", "RUNNING"))
    watch, told = watching(tmp_path, known)
    until("the first UI", lambda: len(told) == 3)
    first.stop()
    until("its end", lambda: "Connection refused" in caplog.text)
    known.ui_url = show(second, "local-1", "SUCCEEDED", "SUCCEEDED", "RUNNING")
    until("the second UI", lambda: len(told) == 5)
    # The program makes another context. The log names its port; its id comes with the events.
    second.stop()
    known.ui_url = show(third, "local-2", "RUNNING")
    until("the UI of another", lambda: "is the UI of local-2, not of local-1" in caplog.text)
    known.application_id = "local-2"
    until("the third UI", lambda: len(told) == 7)
    asked = len(third.asked)
    until("another answer", lambda: len(third.asked) > asked + 6)
    watch.stop()
    assert [(one.subject, one.application_id or one.subject_id, one.new_status) for one in told] == [
        ("APPLICATION", "local-1", "RUNNING"),
        ("SPARK_JOB", "local-1", "FINISHED"),
        ("SPARK_JOB", "local-1", "RUNNING"),
        ("SPARK_JOB", "local-1", "FINISHED"),
        ("SPARK_JOB", "local-1", "RUNNING"),
        ("APPLICATION", "local-2", "RUNNING"),
        ("SPARK_JOB", "local-2", "RUNNING"),
    ]
    assert [one.subject_id for one in told if one.subject == "SPARK_JOB"] == ["0", "1", "1", "2", "0"]


def test_a_ui_is_asked_seldom_while_an_event_log_says_the_same(tmp_path: Path) -> None:
    watch, _ = watched(tmp_path)
    (ui,) = watch._sources.while_running
    for is_logged, seconds in ((False, 0), (True, 20), (False, 0)):
        watch.ask_ui(is_logged=is_logged)
        assert ui.least_seconds == seconds


def test_progress_is_logged_when_it_has_changed_and_at_most_every_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(task_watch, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    lines: list[tuple[float, str]] = []
    logger = SimpleNamespace(info=lambda text, *words: lines.append((clock.seconds, text % words)))
    sources = Sources(Endpoints("local[2]", "client", {}), Known())
    watch = TaskWatch(
        sources, tmp_path, deploy_mode="client", interval_seconds=5, on_transition=lambda _: None, logger=logger
    )
    for second in range(300):
        clock.seconds = float(second)
        if second == 12:  # the first answer of the UI
            sources.ui.progress = "0 of 25 jobs done"
        elif 12 < second <= 37:
            sources.ui.progress = f"{second - 12} of 25 jobs done"
        elif second == 77:
            sources.ui.progress = "25 of 26 jobs done"
        watch._take(StatusReport("APPLICATION", "local-1", "RUNNING", NOW, "driver UI"))
    assert lines == [
        (60, "Spark: 25 of 25 jobs done"),
        (120, "Spark: 25 of 26 jobs done"),
    ]


NUMBERS = TaskNumbers("app-1", "", "event log", finished=3)


@pytest.mark.parametrize("is_logged", [True, False])
def test_numbers_are_asked_for_where_no_log_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_logged: bool
) -> None:
    watch, _ = watched(tmp_path, Source())
    asked = structs.replace(NUMBERS, source="History Server")
    monkeypatch.setattr(watch._sources, "numbers", lambda: [asked])
    if is_logged:
        watch.log.tell(NUMBERS)
    watch.ask_at_the_end(LIMIT_SECONDS)
    assert watch.summary("", None).numbers == ((NUMBERS if is_logged else asked),)


def test_a_log_that_is_read_again_takes_nothing_back(tmp_path: Path) -> None:
    watch, _ = watched(tmp_path)
    second = structs.replace(NUMBERS, attempt_id="2", finished=1)
    for one in (NUMBERS, second, structs.replace(NUMBERS, finished=1), structs.replace(second, failed=1)):
        watch.log.tell(one)
    assert watch.log.summary().numbers == (NUMBERS, structs.replace(second, failed=1))
