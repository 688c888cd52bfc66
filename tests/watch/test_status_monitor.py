"""The monitor of one launch: transitions are passed on once and kept, and no source holds it up."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.directory import TRANSITIONS_FILE, open_regular
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import read_transitions
from spark_lineage.merge.transition import StatusReport, StatusTransition, TaskNumbers
from spark_lineage.watch import status_monitor
from spark_lineage.watch.dialect import Dialect, Dialogue
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_monitor import SUBMIT, StatusMonitor

LIMIT_SECONDS = 30
NOW = datetime(2026, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)
QUIET = SimpleNamespace(debug=lambda *_, **__: None, info=lambda *_, **__: None, warning=lambda *_, **__: None)


class Source(Dialect):
    """Reports what it is given, waits for an event, raises an error; again and again."""

    name, first_seconds = "standalone master", 0.05

    def __init__(self, *answers: Any) -> None:
        super().__init__(Endpoints("local", "client", {}), Driver())
        self.answers = answers
        self.polls = 0
        self.is_asked = threading.Event()

    def poll(self) -> Dialogue[list[StatusReport]]:
        self.polls += 1
        self.is_asked.set()
        reports = []
        for answer in self.answers:
            if isinstance(answer, threading.Event):
                answer.wait(60)
            elif isinstance(answer, Exception):
                raise answer
            else:
                reports.append(answer)
        yield from ()
        return reports


def watched(
    directory: Path,
    *at_the_end: Source,
    deploy_mode: str = "client",
    while_running: tuple[Source, ...] = (),
    interval_seconds: float = 5,
) -> tuple[StatusMonitor, list[Any]]:
    told: list[StatusTransition] = []
    sources = Sources(Endpoints("local[2]", deploy_mode, {}), Driver())
    sources.at_the_end = at_the_end
    sources.while_running = while_running or sources.while_running
    watch = StatusMonitor(
        sources, directory, interval_seconds=interval_seconds, on_transition=told.append, logger=QUIET
    )
    return watch, told


def watching(directory: Path, known: Driver) -> tuple[StatusMonitor, list[StatusTransition]]:
    """Watch a driver's UI, which is asked often."""
    told: list[StatusTransition] = []
    sources = Sources(Endpoints("local[2]", "client", {}), known)
    watch = StatusMonitor(sources, directory, interval_seconds=0.05, on_transition=told.append, logger=QUIET)
    begun(watch)
    return watch, told


def begun(watch: StatusMonitor) -> None:
    """Have a monitor begin, when its first question is due."""
    until("the thread", lambda: watch.poll() or watch._thread)


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
    watch.finish(0.3)
    assert statuses(told) == [("APPLICATION", "app-1", "FINISHED")]
    late.set()


def test_a_flush_waits_for_what_is_just_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, _ = watched(tmp_path)
    watch.submitted("host:1")
    begun, released, written = threading.Event(), threading.Event(), threading.Event()

    def append(*_: Any) -> None:
        begun.set()
        released.wait(LIMIT_SECONDS)
        written.set()

    monkeypatch.setattr(status_monitor, "append_private", append)
    watch.note("RUNNING", SUBMIT)
    threading.Thread(target=watch.write, daemon=True).start()
    assert begun.wait(LIMIT_SECONDS)
    threading.Timer(0.2, released.set).start()
    watch.flush(LIMIT_SECONDS)
    assert written.is_set()


def test_a_kill_that_interrupts_a_report_is_noted(tmp_path: Path) -> None:
    # As the handler of a signal where no thread can be started any more.
    watch, told = watched(tmp_path)
    watch._on_transition = lambda one: told.append(one) or (one.new_status == "SUBMITTED" and watch.kill_asked("late"))
    assert BoundedRun(lambda: watch.submitted("host:1"), "test").wait(LIMIT_SECONDS)
    assert [one.new_status for one in told] == ["SUBMITTED", "KILLING"]


def test_a_source_that_hangs_does_not_hold_up_the_stop(loopback: Any, tmp_path: Path) -> None:
    loopback.reply("/api/v1/applications", json=[], seconds=3)
    watch, told = watching(tmp_path, Driver(ui_url=loopback.url))
    until("the question", lambda: loopback.asked)
    began = time.monotonic()
    watch.stop()
    assert time.monotonic() - began < 1
    assert told == []


def test_an_answer_that_comes_too_late_is_not_told(tmp_path: Path) -> None:
    late = threading.Event()
    watch, told = watched(tmp_path, Source(late, StatusReport("APPLICATION", "app-1", "FAILED", NOW, "x")))
    watch.finish(0.1)
    late.set()
    time.sleep(0.2)
    assert told == []


def test_in_client_mode_an_application_ends_with_its_driver_whoever_told_of_it(tmp_path: Path) -> None:
    watch, told = watched(tmp_path)
    watch.submitted("host:1")
    watch.report(StatusReport("APPLICATION", "local-1", "RUNNING", NOW, "driver UI"))
    watch.ended("FAILED", "spark-submit", {"local-2"}, "exit code 1", "ValueError: no")
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
    watch.report(StatusReport("APPLICATION", "spark-1", "RUNNING", NOW, "driver UI"))
    watch.ended(None, "Airflow", {"spark-1"})
    assert statuses(told)[1:] == [("APPLICATION", "spark-1", "RUNNING")], "the driver may still run"
    watch.report(StatusReport("DRIVER", "ns:pod", "FAILED", NOW, "Kubernetes", detail="OOMKilled"))
    watch.ended(None, "Airflow", {"spark-1", "spark-2"})
    assert statuses(told)[3:] == [("APPLICATION", "spark-1", "FAILED"), ("APPLICATION", "spark-2", "FAILED")]
    assert (told[-1].source, told[-1].detail) == ("Airflow", "the driver has ended")


def test_what_the_cluster_says_of_a_failed_driver_is_its_error(tmp_path: Path) -> None:
    watch, _ = watched(tmp_path, deploy_mode="cluster")
    watch.submitted("driver-1")
    assert (watch.driver_status, watch.driver_error) == ("SUBMITTED", "")
    watch.report(StatusReport("DRIVER", "driver-1", "FAILED", NOW, "Kubernetes", detail="OOMKilled"))
    watch.ended(None, "Airflow", set())
    assert (watch.driver_status, watch.driver_error) == ("FAILED", "OOMKilled (Kubernetes)")


def test_error_of_a_driver_is_not_that_an_earlier_try_has_lost_it(tmp_path: Path) -> None:
    watch, _ = watched(tmp_path, deploy_mode="cluster")
    watch.submitted("driver-1")
    watch.ended("UNKNOWN", "Airflow", set(), "not watched any more")
    watch.reattached("driver-1", 2)
    assert watch.driver_error == ""
    watch.report(StatusReport("DRIVER", "driver-1", "FAILED", NOW, "Kubernetes", detail="OOMKilled"))
    assert watch.driver_error == "OOMKilled (Kubernetes)"


def test_a_ui_is_followed_to_another_port_and_told_of_once(
    loopbacks: Callable[[], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "spark_lineage.watch.status_monitor")
    first, second, third = loopbacks(), loopbacks(), loopbacks()
    known = Driver("local-1", ui_url=show(first, "local-1", "SUCCEEDED", "RUNNING"))
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


def test_progress_is_logged_when_it_has_changed_and_at_most_every_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(status_monitor, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    lines: list[tuple[float, str]] = []
    logger = SimpleNamespace(info=lambda text, *words: lines.append((clock.seconds, text % words)))
    sources = Sources(Endpoints("local[2]", "client", {}), Driver())
    watch = StatusMonitor(sources, tmp_path, interval_seconds=5, on_transition=lambda _: None, logger=logger)

    def go_on(_: float) -> None:
        clock.seconds += 1
        if 12 <= clock.seconds <= 37:  # the first answers of the UI
            sources.ui.progress = f"{clock.seconds - 12:.0f} of 25 jobs done"
        elif clock.seconds == 77:
            sources.ui.progress = "25 of 26 jobs done"

    stopping: Any = SimpleNamespace(is_set=lambda: clock.seconds == 300, wait=go_on)
    watch._stopping = stopping
    watch._run()
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
        watch.report(NUMBERS)
    watch.finish(LIMIT_SECONDS)
    assert watch.summary("", None).numbers == ((NUMBERS if is_logged else asked),)


def test_a_log_that_is_read_again_takes_nothing_back(tmp_path: Path) -> None:
    watch, _ = watched(tmp_path)
    second = structs.replace(NUMBERS, attempt_id="2", finished=1)
    for one in (NUMBERS, second, structs.replace(NUMBERS, finished=1), structs.replace(second, failed=1)):
        watch.report(one)
    assert watch.summary().numbers == (NUMBERS, structs.replace(second, failed=1))


REPORT = StatusReport("APPLICATION", "app-1", "RUNNING", NOW, "test")


def test_what_a_source_says_is_told_once_until_the_stop(tmp_path: Path) -> None:
    source = Source(REPORT)
    watch, told = watched(tmp_path, while_running=(source,), interval_seconds=0.05)
    begun(watch)
    until("three questions", lambda: source.polls > 2)
    watch.stop()
    polls = source.polls
    time.sleep(0.3)
    assert source.polls == polls
    assert statuses(told) == [("APPLICATION", "app-1", "RUNNING")]


def test_nothing_is_made_before_the_first_question_is_due(tmp_path: Path) -> None:
    source = Source(REPORT)
    source.first_seconds = 60
    before = threading.active_count()
    watch, _ = watched(tmp_path, while_running=(source,))
    watch.poll()
    assert threading.active_count() == before
    assert "client" not in vars(watch._sources)
    watch.stop()
    source.due = 0.0
    watch.poll()
    assert threading.active_count() == before, "a monitor that was stopped begins no more"


def test_poll_where_no_thread_can_be_started_asks_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    source = Source()
    watch, _ = watched(tmp_path, while_running=(source,))
    source.due = 0.0
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        watch.poll()
    watch.poll()
    assert source.is_asked.wait(LIMIT_SECONDS)
    watch.stop()


@pytest.mark.parametrize(("has_event_log", "least", "most"), [(True, 20, 40), (False, 0, 2)])
def test_a_driver_that_logs_what_it_does_is_asked_late(
    tmp_path: Path, has_event_log: bool, least: float, most: float
) -> None:
    sources = Sources(Endpoints("local[2]", "client", {}), Driver())
    StatusMonitor(sources, tmp_path, interval_seconds=5, has_event_log=has_event_log, on_transition=print, logger=QUIET)
    assert least < sources.ui.due - time.monotonic() < most


def test_an_answer_after_the_stop_is_not_told(tmp_path: Path) -> None:
    late = threading.Event()
    source = Source(late, REPORT)
    watch, told = watched(tmp_path, while_running=(source,), interval_seconds=0.05)
    begun(watch)
    assert source.is_asked.wait(LIMIT_SECONDS)
    began = time.monotonic()
    watch.stop()
    assert time.monotonic() - began < 1
    late.set()
    time.sleep(0.2)
    assert told == []


def test_a_source_without_answer_or_with_a_fault_does_not_keep_the_others_from_being_asked(tmp_path: Path) -> None:
    silent, faulty, good = Source(NoAnswerError("refused")), Source(ZeroDivisionError()), Source(REPORT)
    watch, _ = watched(tmp_path, while_running=(silent, faulty, good), interval_seconds=0.02)
    begun(watch)
    until("twenty answers", lambda: good.polls > 20)
    watch.stop()
    assert 0 < silent.polls < good.polls, "it is left alone for twice as long each time"
    assert 0 < faulty.polls < good.polls


def test_an_error_of_a_listener_ends_nothing(tmp_path: Path) -> None:
    source = Source(REPORT)
    watch, _ = watched(tmp_path, while_running=(source,), interval_seconds=0.02)
    watch._on_transition = lambda _: 1 / 0
    begun(watch)
    until("another answer", lambda: source.polls > 2)
    watch.stop()


def monitor(directory: Path, on_transition: Callable[[StatusTransition], object] = lambda _: None) -> StatusMonitor:
    """Return a monitor that asks nobody."""
    sources = Sources(Endpoints("local[2]", "client", {}), Driver())
    return StatusMonitor(sources, directory, interval_seconds=5, on_transition=on_transition, logger=QUIET)


def driver(status: str, source: str = "standalone master", **more: str) -> StatusReport:
    return StatusReport("DRIVER", "driver-1", status, NOW, source, **more)  # type: ignore[arg-type]


def job(number: int, status: str) -> StatusReport:
    return StatusReport("SPARK_JOB", str(number), status, NOW, "driver UI", "app-1")  # type: ignore[arg-type]


def test_what_is_told_can_be_read_again(tmp_path: Path) -> None:
    told: list[StatusTransition] = []
    log = monitor(tmp_path, told.append)
    for report in (driver("SUBMITTED"), driver("SUBMITTED", "Airflow"), driver("RUNNING"), driver("SUBMITTED")):
        log.report(report)
    assert [one.new_status for one in told] == ["SUBMITTED", "RUNNING", "SUBMITTED"]
    log.flush(60)
    assert list(read_transitions(tmp_path)) == told == list(log.summary().transitions)
    assert log.status("DRIVER", "driver-1") == "SUBMITTED"


def test_the_next_try_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    earlier = monitor(tmp_path)
    earlier.report(driver("RUNNING"))
    earlier.flush(60)
    told: list[StatusTransition] = []
    log = monitor(tmp_path, told.append)
    log.resume("driver-1", read_transitions(tmp_path))
    log.report(driver("RUNNING"))
    assert told == []
    log.report(driver("REATTACHED", "Airflow", detail="by try 2"))
    log.report(driver("FINISHED"))
    assert [one.old_status for one in told] == ["RUNNING", "REATTACHED"]
    log.flush(60)
    assert [one.new_status for one in read_transitions(tmp_path)] == ["RUNNING", "REATTACHED", "FINISHED"]


def test_parts_are_summed_and_only_their_failures_are_on_disk(tmp_path: Path) -> None:
    log = monitor(tmp_path)
    for number in range(5):
        log.report(job(number, "RUNNING"))
        log.report(job(number, "FAILED" if number == 3 else "FINISHED"))
    assert log.summary().counts == (("SPARK_JOB", "FAILED", 1), ("SPARK_JOB", "FINISHED", 4))
    log.flush(60)
    assert [one.subject_id for one in read_transitions(tmp_path)] == ["3"]


def test_no_secret_is_on_disk(tmp_path: Path) -> None:
    log = monitor(tmp_path)
    log.report(driver("FAILED", detail="jdbc:postgresql://me:hunter2@db/x", exception="password=hunter2"))
    log.flush(60)
    assert "hunter2" not in (tmp_path / TRANSITIONS_FILE).read_text()


def test_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    log = monitor(tmp_path)
    log.report(driver("RUNNING"))
    log.flush(60)
    with (tmp_path / TRANSITIONS_FILE).open("ab") as stream:
        stream.write(b'{"subject":"DRIVER","subj')
    assert [one.new_status for one in read_transitions(tmp_path)] == ["RUNNING"]


def test_without_a_directory_nothing_is_written_and_all_is_told() -> None:
    directory = Path("/nonexistent/launch")
    told: list[StatusTransition] = []
    monitor(directory, told.append).report(driver("RUNNING"))
    assert len(told) == 1
    assert list(read_transitions(directory)) == []


def test_of_many_threads_each_transition_is_told_once(tmp_path: Path) -> None:
    told: list[StatusTransition] = []
    log = monitor(tmp_path, told.append)
    start = threading.Barrier(8)

    def tell() -> None:
        start.wait()
        for number in range(200):
            log.report(job(number, "FAILED"))

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.subject_id for one in told] == [str(number) for number in range(200)]


def test_a_file_that_hangs_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a share that is gone: whoever opens it waits.
    is_back = threading.Event()

    def waiting(*arguments: Any) -> int:
        is_back.wait(60)
        return open_regular(*arguments)

    monkeypatch.setattr("spark_lineage.launch.directory.open_regular", waiting)
    told: list[StatusTransition] = []
    log = monitor(tmp_path, told.append)
    log.report(driver("SUBMITTED"))
    log.report(driver("RUNNING"))
    log.flush(0.2)
    assert [one.new_status for one in told] == ["SUBMITTED", "RUNNING"]
    is_back.set()
    log.flush(60)
    assert len((tmp_path / TRANSITIONS_FILE).read_bytes().splitlines()) == 2


def test_a_fifo_in_the_place_of_the_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / TRANSITIONS_FILE)
    told: list[StatusTransition] = []
    log = monitor(tmp_path, told.append)
    log.report(driver("SUBMITTED"))
    log.write()
    assert [one.new_status for one in told] == ["SUBMITTED"]
