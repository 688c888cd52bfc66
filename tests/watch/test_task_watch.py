"""The watch of one launch: what is told at its end, and that nothing holds it up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_lineage.merge.transition import StatusReport, StatusTransition
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Known, sources_for
from spark_lineage.watch.task_watch import TaskWatch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = SimpleNamespace(debug=lambda *_, **__: None, info=lambda *_, **__: None, warning=lambda *_, **__: None)


class Source:
    name, first_seconds = "standalone master", 1.0

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
    sources = sources_for(Endpoints.of("local[2]", "client", {}), Known())
    sources.at_the_end = at_the_end
    watch = TaskWatch(
        sources, directory, deploy_mode=deploy_mode, interval_seconds=5, on_transition=told.append, logger=QUIET
    )
    return watch, told


def statuses(told: list[StatusTransition]) -> list[tuple[str, str, str]]:
    return [(one.subject, one.subject_id, one.new_status) for one in told]


def within(seconds: float) -> Any:
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def test_a_source_that_hangs_or_is_at_fault_does_not_hold_up_the_end(tmp_path: Path) -> None:
    late = threading.Event()
    report = StatusReport("APPLICATION", "app-1", "FINISHED", NOW, "standalone master")
    watch, told = watched(tmp_path, Source(OverflowError()), Source(report), Source(late, report))
    watch.ask_at_the_end(within(0.3))
    assert statuses(told) == [("APPLICATION", "app-1", "FINISHED")]
    late.set()


def test_an_answer_that_comes_too_late_is_not_told(tmp_path: Path) -> None:
    late = threading.Event()
    watch, told = watched(tmp_path, Source(late, StatusReport("APPLICATION", "app-1", "FAILED", NOW, "x")))
    watch.ask_at_the_end(within(0.1))
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
