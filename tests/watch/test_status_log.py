"""Transitions are passed on once, and are on disk, without secrets, for whoever comes after the try."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.launch.directory import TRANSITIONS_FILE, open_regular
from spark_lineage.merge.transition import StatusReport, StatusTransition
from spark_lineage.watch.task_watch import StatusLog, read_transitions

NOW = datetime(2026, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)


def driver(status: str, source: str = "standalone master", **more: str) -> StatusReport:
    return StatusReport("DRIVER", "driver-1", status, NOW, source, **more)  # type: ignore[arg-type]


def job(number: int, status: str) -> StatusReport:
    return StatusReport("SPARK_JOB", str(number), status, NOW, "driver UI", "app-1")  # type: ignore[arg-type]


def test_what_is_told_can_be_read_again(tmp_path: Path) -> None:
    told: list[StatusTransition] = []
    log = StatusLog(tmp_path, told.append)
    for report in (driver("SUBMITTED"), driver("SUBMITTED", "Airflow"), driver("RUNNING"), driver("SUBMITTED")):
        log.tell(report)
    assert [one.new_status for one in told] == ["SUBMITTED", "RUNNING", "SUBMITTED"]
    log.flush(60)
    assert list(read_transitions(tmp_path)) == told == list(log.summary().transitions)
    assert log.status("DRIVER", "driver-1") == "SUBMITTED"


def test_the_next_try_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    earlier = StatusLog(tmp_path, lambda _: None)
    earlier.tell(driver("RUNNING"))
    earlier.flush(60)
    told: list[StatusTransition] = []
    log = StatusLog(tmp_path, told.append)
    log.restore(read_transitions(tmp_path))
    log.tell(driver("RUNNING"))
    assert told == []
    log.tell(driver("REATTACHED", "Airflow", detail="by try 2"))
    log.tell(driver("FINISHED"))
    assert [one.old_status for one in told] == ["RUNNING", "REATTACHED"]
    log.flush(60)
    assert [one.new_status for one in read_transitions(tmp_path)] == ["RUNNING", "REATTACHED", "FINISHED"]


def test_parts_are_summed_and_only_their_failures_are_on_disk(tmp_path: Path) -> None:
    log = StatusLog(tmp_path, lambda _: None)
    for number in range(5):
        log.tell(job(number, "RUNNING"))
        log.tell(job(number, "FAILED" if number == 3 else "FINISHED"))
    assert log.summary().counts == (("SPARK_JOB", "FAILED", 1), ("SPARK_JOB", "FINISHED", 4))
    log.flush(60)
    assert [one.subject_id for one in read_transitions(tmp_path)] == ["3"]


def test_no_secret_is_on_disk(tmp_path: Path) -> None:
    log = StatusLog(tmp_path, lambda _: None)
    log.tell(driver("FAILED", detail="jdbc:postgresql://me:hunter2@db/x", exception="password=hunter2"))
    log.flush(60)
    assert "hunter2" not in (tmp_path / TRANSITIONS_FILE).read_text()


def test_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    log = StatusLog(tmp_path, lambda _: None)
    log.tell(driver("RUNNING"))
    log.flush(60)
    with (tmp_path / TRANSITIONS_FILE).open("ab") as stream:
        stream.write(b'{"subject":"DRIVER","subj')
    assert [one.new_status for one in read_transitions(tmp_path)] == ["RUNNING"]


@pytest.mark.parametrize("directory", [None, Path("/nonexistent/launch")])
def test_without_a_directory_nothing_is_written_and_all_is_told(directory: Path | None) -> None:
    told: list[StatusTransition] = []
    StatusLog(directory, told.append).tell(driver("RUNNING"))
    assert len(told) == 1
    assert directory is None or list(read_transitions(directory)) == []


def test_of_many_threads_each_transition_is_told_once(tmp_path: Path) -> None:
    told: list[StatusTransition] = []
    log = StatusLog(tmp_path, told.append)
    start = threading.Barrier(8)

    def tell() -> None:
        start.wait()
        for number in range(200):
            log.tell(job(number, "FAILED"))

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

    monkeypatch.setattr("spark_lineage.watch.task_watch.open_regular", waiting)
    told: list[StatusTransition] = []
    log = StatusLog(tmp_path, told.append)
    log.tell(driver("SUBMITTED"))
    log.tell(driver("RUNNING"))
    log.flush(0.2)
    assert [one.new_status for one in told] == ["SUBMITTED", "RUNNING"]
    is_back.set()
    log.flush(60)
    assert len((tmp_path / TRANSITIONS_FILE).read_bytes().splitlines()) == 2


def test_a_fifo_in_the_place_of_the_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / TRANSITIONS_FILE)
    told: list[StatusTransition] = []
    log = StatusLog(tmp_path, told.append)
    log.tell(driver("SUBMITTED"))
    log.write()
    assert [one.new_status for one in told] == ["SUBMITTED"]
