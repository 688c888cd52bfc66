from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.merge.transition import ENDED, MAX_FAILED, MAX_KEPT, Status, StatusLedger, StatusReport, Subject

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def report(
    status: Status, source: str = "driver UI", subject: Subject = "APPLICATION", subject_id: str = "app-1"
) -> StatusReport:
    return StatusReport(subject, subject_id, status, NOW, source, detail=f"{source} says {status}")


def statuses(reports: list[StatusReport]) -> list[tuple[str | None, str, str]]:
    ledger = StatusLedger()
    for one in reports:
        ledger.add(one)
    return [(one.old_status, one.new_status, one.source) for one in ledger.transitions]


def test_a_report_makes_a_transition_once() -> None:
    ledger = StatusLedger()
    first = ledger.add(report("RUNNING"))
    assert first is not None
    assert (first.old_status, first.new_status, first.detail) == (None, "RUNNING", "driver UI says RUNNING")
    assert ledger.add(report("RUNNING")) is None
    assert ledger.add(report("RUNNING", "standalone master")) is None
    assert ledger.transitions == [first]


def test_a_source_that_lags_behind_changes_nothing() -> None:
    told = [
        report("RUNNING"),
        report("WAITING", "standalone master"),
        report("RUNNING", "standalone master"),
        report("FINISHED", "standalone master"),
        report("RUNNING"),
    ]
    assert statuses(told) == [(None, "RUNNING", "driver UI"), ("RUNNING", "FINISHED", "standalone master")]


def test_a_source_may_take_back_its_own_word() -> None:
    master = "standalone master"
    told = [report(status, master) for status in ("SUBMITTED", "RUNNING", "RELAUNCHING", "RUNNING", "FAILED")]
    assert [new for _, new, _ in statuses(told)] == ["SUBMITTED", "RUNNING", "RELAUNCHING", "RUNNING", "FAILED"]


def test_what_has_ended_has_ended() -> None:
    assert statuses([report("FAILED", "Kubernetes"), report("FINISHED"), report("UNKNOWN")]) == [
        (None, "FAILED", "Kubernetes")
    ]


def test_what_is_lost_may_be_found_again() -> None:
    told = [report("RUNNING"), report("UNKNOWN", "watcher"), report("RUNNING", "standalone master")]
    assert [new for _, new, _ in statuses(told)] == ["RUNNING", "UNKNOWN", "RUNNING"]


def test_a_source_that_keeps_its_word_is_heard_again_when_another_has_lost_sight() -> None:
    told = [report("RUNNING"), report("UNKNOWN", "watcher"), report("RUNNING"), report("UNKNOWN", "watcher")]
    assert [new for _, new, _ in statuses(told)] == ["RUNNING", "UNKNOWN", "RUNNING"]
    told = [report("RUNNING"), report("REATTACHED", "Airflow"), report("RUNNING"), report("FINISHED")]
    assert [new for _, new, _ in statuses(told)] == ["RUNNING", "REATTACHED", "RUNNING", "FINISHED"]


def test_each_take_over_is_told_once() -> None:
    def taken(try_number: int) -> StatusReport:
        return StatusReport("APPLICATION", "app-1", "REATTACHED", NOW, "Airflow", detail=f"by try {try_number}")

    told = [report("RUNNING"), taken(2), taken(2), report("RUNNING"), taken(2), taken(3), taken(4), report("RUNNING")]
    assert [new for _, new, _ in statuses([*told, taken(3), report("FINISHED"), taken(5)])] == [
        "RUNNING",
        "REATTACHED",
        "RUNNING",
        "REATTACHED",
        "REATTACHED",
        "RUNNING",
        "FINISHED",
    ]


def test_a_way_that_is_told_anew_is_no_way_back() -> None:
    early = NOW - timedelta(minutes=5)

    def told(status: Status, source: str, time: datetime = NOW) -> StatusReport:
        return StatusReport("DRIVER", "driver-1", status, time, source)

    master = "standalone master"
    before = [told("SUBMITTED", "spark-submit", early), told("RUNNING", master, early)]
    again = [told("SUBMITTED", master, early - timedelta(seconds=1)), told("RUNNING", master, early)]
    assert [new for _, new, _ in statuses([*before, *again])] == ["SUBMITTED", "RUNNING"]
    taken = told("REATTACHED", "Airflow")
    assert [new for _, new, _ in statuses([*before, taken, *again])] == [
        "SUBMITTED",
        "RUNNING",
        "REATTACHED",
        "RUNNING",
    ]
    relaunched = [told("RELAUNCHING", master), told("RUNNING", master)]
    assert [new for _, new, _ in statuses([*before, *relaunched])][2:] == ["RELAUNCHING", "RUNNING"]


def test_of_parts_the_failed_ones_are_kept_and_all_are_counted() -> None:
    ledger = StatusLedger()
    for number in range(100):
        for status in ("RUNNING", "FAILED" if number % 2 else "FINISHED"):
            ledger.add(report(status, subject="SPARK_JOB", subject_id=str(number)))
    ledger.add(report("RUNNING", subject="SPARK_JOB", subject_id="last"))
    assert ledger.summed() == (("SPARK_JOB", "FAILED", 50), ("SPARK_JOB", "FINISHED", 50), ("SPARK_JOB", "RUNNING", 1))
    assert {one.new_status for one in ledger.transitions} == {"FAILED"}
    assert [one.subject_id for one in ledger.transitions] == [str(number) for number in range(1, 2 * MAX_FAILED, 2)]
    assert ledger.status("SPARK_JOB", "99") == "FAILED"
    assert ledger.status("SPARK_JOB", "100") is None


@pytest.mark.parametrize("key", ["app-1", "app-1/2"])
def test_of_parts_whose_application_has_ended_none_is_running(key: str) -> None:
    ledger = StatusLedger()
    for number, status in enumerate(("FINISHED", "RUNNING")):
        ledger.add(StatusReport("SPARK_JOB", str(number), status, NOW, "driver UI", key))
    ledger.add(StatusReport("SPARK_JOB", "0", "RUNNING", NOW, "driver UI", "app-2"))
    ledger.add(StatusReport("APPLICATION", "app-1", "FINISHED", NOW, "History Server"))
    assert ledger.summed() == (("SPARK_JOB", "FINISHED", 1), ("SPARK_JOB", "RUNNING", 1), ("SPARK_JOB", "UNKNOWN", 1))


def test_the_same_number_in_another_application_is_another_thing() -> None:
    ledger = StatusLedger()
    for application in ("app-1", "app-2"):
        ledger.add(StatusReport("SQL_EXECUTION", "0", "FAILED", NOW, "driver UI", application))
    assert [one.application_id for one in ledger.transitions] == ["app-1", "app-2"]


@given(st.lists(st.tuples(st.sampled_from(get_args(Status)), st.sampled_from(["a", "b", "c"]))))
@pytest.mark.parametrize("subject", ["APPLICATION", "SPARK_JOB"])
def test_transitions_are_a_chain_without_repetition(subject: Subject, told: list[tuple[Status, str]]) -> None:
    ledger = StatusLedger()
    made = [one for status, source in told if (one := ledger.add(report(status, source, subject)))]
    assert [one.old_status for one in made] == [None, *(one.new_status for one in made)][: len(made)]
    assert all(one.old_status != one.new_status or one.new_status == "REATTACHED" for one in made)
    assert len({(one.new_status, one.detail) for one in made if one.new_status == "REATTACHED"}) == sum(
        one.new_status == "REATTACHED" for one in made
    )
    ends = [one.new_status for one in made if one.new_status in ENDED]
    is_killed = subject == "APPLICATION" and ends == ["FINISHED", "KILLED"]
    assert len(ends) <= 1 or is_killed, "a driver whose application is killed stops its context"
    assert not ends or made[-1].new_status in ENDED
    assert sum(count for *_, count in ledger.summed()) == (subject == "SPARK_JOB" and len(made) > 0)


def test_what_changes_without_end_keeps_its_beginning_and_its_end() -> None:
    ledger = StatusLedger()
    for number in range(1_000):
        ledger.add(report("RUNNING", subject="STREAMING_QUERY", subject_id=str(number)))
    ledger.add(report("RUNNING"))
    kept = [one.subject_id for one in ledger.transitions if one.subject == "STREAMING_QUERY"]
    half = MAX_KEPT // 2
    assert kept == [str(number) for number in (*range(half), *range(1_000 - half, 1_000))]
    assert ledger.summed() == (("STREAMING_QUERY", "RUNNING", 1_000),)


def test_why_something_failed_may_be_told_later_by_another_source() -> None:
    ledger = StatusLedger()
    for why in ("", "Job aborted", "another reason"):
        ledger.add(StatusReport("SPARK_JOB", "1", "FAILED", NOW, f"source of {why}", "app-1", exception=why))
    ledger.add(StatusReport("SPARK_JOB", "2", "FINISHED", NOW, "driver UI", "app-1"))
    ledger.add(StatusReport("SPARK_JOB", "2", "FAILED", NOW, "event log", "app-1", exception="too late"))
    assert [(one.subject_id, one.exception) for one in ledger.transitions] == [("1", "Job aborted")]


@pytest.mark.parametrize(
    ("told", "is_uncaught"),
    [
        ([], False),
        ([("SPARK_JOB", "FINISHED", 1, "app-1")], False),
        ([("SPARK_JOB", "FAILED", 1, "app-1")], True),
        ([("SPARK_JOB", "RUNNING", 1, "app-1")], False),
        # What failed was caught: something else succeeded after it.
        ([("SPARK_JOB", "FAILED", 1, "app-1"), ("SPARK_JOB", "FINISHED", 2, "app-1")], False),
        ([("SQL_EXECUTION", "FAILED", 1, "app-1"), ("SPARK_JOB", "FINISHED", 2, "app-1")], False),
        ([("SPARK_JOB", "FINISHED", 1, "app-1"), ("SPARK_JOB", "FAILED", 2, "app-1")], True),
        ([("SPARK_JOB", "FINISHED", 2, "app-1"), ("SPARK_JOB", "FAILED", 2, "app-1")], True),
        # A part of another application says nothing of this one.
        ([("SPARK_JOB", "FAILED", 1, "app-1"), ("SPARK_JOB", "FINISHED", 2, "app-2")], True),
        # All queries are stopped when a program ends, also by a failure.
        ([("STREAMING_QUERY", "FAILED", 1, "app-1"), ("STREAMING_QUERY", "FINISHED", 2, "app-1")], True),
        ([("STREAMING_QUERY", "FAILED", 1, "app-1"), ("SPARK_JOB", "FINISHED", 2, "app-1")], False),
    ],
)
def test_what_succeeds_after_a_failure_proves_that_it_was_caught(
    told: list[tuple[Subject, Status, int, str]], is_uncaught: bool
) -> None:
    for order in (told, told[::-1]):
        ledger = StatusLedger()
        for number, (subject, status, minute, application) in enumerate(order):
            time = NOW + timedelta(minutes=minute)
            ledger.add(StatusReport(subject, f"{subject}-{number}", status, time, "event log", application))
        assert ledger.has_uncaught_failure() is is_uncaught
